package holdfast

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/latency"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// takeBreakers lets l take over the breakers of the level before. Under another scope
// those go on whose names it still makes. A layer that is gone leaves none.
func (k *Kit) takeBreakers(l, old *level, d *draft) {
	if old.breakers == nil && l.breaker != nil {
		l.breakers, _ = k.fleet.Group(k.breakerConfig(l), 0) // which was checked
	}
	if old.breakers == nil {
		return
	}
	l.breakers = old.breakers
	if l.breaker == old.breaker && l.probeTimeout == old.probeTimeout { // which another layer may set
		return
	}
	switch {
	case l.breaker == nil:
		l.breakers = l.breakers.Part(func(string) bool { return false })
		return
	case old.breaker != nil && old.breaker.Scope != l.breaker.Scope:
		scope := l.breaker.Scope
		l.breakers = l.breakers.Part(func(key string) bool {
			return l.names(key, scope == breaker.PerTarget, scope == breaker.PerMethod)
		})
	}
	d.told = append(d.told, l.breakers.Apply(k.breakerConfig(l)))
}

// bulkheads are those of a level's keys.
type bulkheads struct {
	config atomic.Pointer[bulkhead.Config]
	*keyed.Registry[*bulkhead.Bulkhead]
}

// newBulkheads returns the bulkheads for a config without faults.
func newBulkheads(config bulkhead.Config) *bulkheads {
	b := &bulkheads{}
	b.config.Store(&config)
	b.Registry = keyed.New(keyed.Options[*bulkhead.Bulkhead]{
		New: func(key string) *bulkhead.Bulkhead {
			made, _ := bulkhead.New(key, *b.config.Load())
			return made
		},
		Idle: (*bulkhead.Bulkhead).Idle,
	})
	return b
}

// update puts a config without faults in force for those there are and those to
// come.
func (b *bulkheads) update(config bulkhead.Config) {
	b.config.Store(&config) // first, so that none is made by the old one unseen
	for _, one := range b.All() {
		_ = one.Resize(config)
	}
}

// takeBulkheads takes over the bulkheads of the level before, with the permits
// that are out and who waits for one. If the layer is gone, those in use are kept
// aside, should it come back while they are.
func (l *level) takeBulkheads(old *level) {
	switch {
	case l.bulkhead == old.bulkhead:
		l.bulkheads, l.parts = old.bulkheads, old.parts
		return
	case l.bulkhead != nil && old.bulkhead != nil && l.bulkhead.Scope == old.bulkhead.Scope:
		l.bulkheads, l.parts = old.bulkheads, old.parts
	case l.bulkhead != nil:
		l.bulkheads, l.parts = newBulkheads(*l.bulkhead), newBulkheads(l.bulkhead.ForMethod())
		scope := l.bulkhead.Scope
		whole := func(key string, _ *bulkhead.Bulkhead) bool {
			return l.names(key, scope != bulkhead.PerMethod, scope == bulkhead.PerMethod)
		}
		for _, from := range []*bulkheads{old.bulkheads, old.parts} {
			if from != nil {
				l.bulkheads.Adopt(from.Registry, whole)
			}
			if from != nil && scope == bulkhead.TwoLevel {
				l.parts.Adopt(from.Registry, func(key string, _ *bulkhead.Bulkhead) bool { return !l.whole(key) })
			}
		}
	default:
		busy := func(_ string, b *bulkhead.Bulkhead) bool { return !b.Idle() }
		l.bulkheads, l.parts = newBulkheads(*old.bulkhead), newBulkheads(old.bulkhead.ForMethod())
		l.bulkheads.Adopt(old.bulkheads.Registry, busy)
		l.parts.Adopt(old.parts.Registry, busy)
		return
	}
	l.bulkheads.update(*l.bulkhead)
	l.parts.update(l.bulkhead.ForMethod())
}

// budgets are the buckets of a level's targets, or of all levels that share them.
type budgets struct {
	budget atomic.Pointer[retry.Budget]
	*keyed.Registry[*retry.Bucket]
}

func newBudgets(budget retry.Budget) *budgets {
	b := &budgets{}
	b.budget.Store(&budget)
	b.Registry = keyed.New(keyed.Options[*retry.Bucket]{
		New:  func(string) *retry.Bucket { return retry.NewBucketAt(*b.budget.Load(), mono.Now()) },
		Idle: func(b *retry.Bucket) bool { return b.FullAt(mono.Now()) },
	})
	return b
}

// update puts a budget in force for the buckets there are and those to come.
func (b *budgets) update(budget retry.Budget) {
	if *b.budget.Load() == budget {
		return
	}
	b.budget.Store(&budget)
	for _, bucket := range b.All() {
		bucket.UpdateAt(budget, mono.Now())
	}
}

// bucketKey names the bucket that a level keeps for a target.
func (l layer[P]) bucketKey(target string, budget retry.Budget) string {
	if budget.Shared {
		return target
	}
	return l.level.key(target)
}

// takeBudgets takes over the buckets of the level before with what they hold. One
// that is shared and was not, or the other way about, begins anew, as does one
// that had no bounds. Shared buckets under other numbers go on if no other entry
// still shares them under the old ones.
func (l *level) takeBudgets(old *level, d *draft) {
	if l.retry == nil {
		return
	}
	budget := l.retry.Budget
	if budget.Shared && d.shared[budget] != nil {
		l.budgets = d.shared[budget]
		return
	}
	switch {
	case budget.Shared && d.before.shared[budget] != nil:
		l.budgets = d.before.shared[budget]
	case old.retry != nil && sameBuckets(old.retry.Budget, budget) && !d.stillShared(old.retry.Budget):
		l.budgets = old.budgets
		l.budgets.update(budget)
	default:
		l.budgets = newBudgets(budget)
	}
	if budget.Shared {
		d.shared[budget] = l.budgets
	}
}

// sameBuckets reports whether the buckets of one budget may go on under another.
func sameBuckets(a, b retry.Budget) bool { return a.Shared == b.Shared && a.IsNone() == b.IsNone() }

// stillShared reports whether entries of the draft share that budget, or have
// taken over its buckets under other numbers.
func (d *draft) stillShared(budget retry.Budget) bool {
	if !budget.Shared {
		return false
	}
	for _, l := range d.levels {
		if l.retry != nil && l.retry.Budget == budget || l.budgets != nil && l.budgets == d.before.shared[budget] {
			return true
		}
	}
	return false
}

// latencies are the records of a level's targets, for a percentile.
type latencies struct {
	hedge atomic.Pointer[retry.Hedge]
	*keyed.Registry[*latency.Record]
}

// newLatencies returns nil if the hedge asks for no percentile.
func newLatencies(hedge retry.Hedge) *latencies {
	if hedge.Percentile == 0 {
		return nil
	}
	r := &latencies{}
	r.hedge.Store(&hedge)
	r.Registry = keyed.New(keyed.Options[*latency.Record]{
		New:  func(string) *latency.Record { return latency.New(r.hedge.Load().Percentile, mono.Now()) },
		Idle: func(l *latency.Record) bool { return l.Idle(mono.Now()) },
	})
	return r
}

// takeLatencies takes over what was recorded by the level before.
func (l *level) takeLatencies(old *level) {
	switch {
	case l.retry == nil || l.retry == old.retry:
		l.latencies = old.latencies
	case old.latencies == nil || l.retry.Hedge.Percentile == 0:
		l.latencies = newLatencies(l.retry.Hedge)
	default:
		l.latencies = old.latencies
		hedge := l.retry.Hedge
		l.latencies.hedge.Store(&hedge)
		for _, one := range l.latencies.All() {
			one.Update(hedge.Percentile)
		}
	}
}
