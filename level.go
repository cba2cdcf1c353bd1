package holdfast

import (
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// level owns the state that belongs to one entry of the table, or to Default:
// methods that inherit a layer share the state of the level that set it.
type level struct {
	kit       *Kit
	name      string // table key, "" for Default
	breakers  *breaker.Group
	bulkheads *keyed.Registry[*bulkhead.Bulkhead]
	parts     *keyed.Registry[*bulkhead.Bulkhead] // within bulkheads, where the scope has two levels
	budgets   *keyed.Registry[*retry.Bucket]
	latencies *keyed.Registry[*retry.Latency] // nil if no percentile is asked for
}

// level returns the level of a table key, one whatever number of adapters ask.
// The caller holds k.mu.
func (k *Kit) level(name string) *level {
	l := k.levels[name]
	if l == nil {
		l = &level{kit: k, name: name}
		k.levels[name] = l
	}
	return l
}

// furnish gives the level of m's own key the state for the layers it sets. What
// is there already stays: it belongs to every adapter of the kit, whose lock the
// caller holds.
func (m *Method) furnish() error {
	if l := m.breaker; l.owned(m.key) && l.level.breakers == nil {
		config := *l.policy
		if config.ProbeTimeout == 0 && m.timeout.policy != nil {
			config.ProbeTimeout = m.timeout.policy.Attempt
		}
		config.Hooks = l.level.kit.watch(config.Hooks)
		group, err := breaker.NewGroup(config, 0)
		if err != nil {
			return err
		}
		l.level.breakers = group
	}
	if l := m.bulkhead; l.owned(m.key) && l.level.bulkheads == nil {
		config := *l.policy
		if _, err := bulkhead.New("", config); err != nil {
			return err
		}
		l.level.bulkheads = newBulkheads(config)
		l.level.parts = newBulkheads(config.ForMethod())
	}
	if l := m.retry; l.owned(m.key) && l.level.budgets == nil {
		l.level.budgets = l.level.kit.budgets(l.policy.Budget)
		l.level.latencies = newLatencies(l.policy)
	}
	return nil
}

// budgets returns the buckets for a level that sets a budget; those of a shared
// one may be another level's already.
func (k *Kit) budgets(budget retry.Budget) *keyed.Registry[*retry.Bucket] {
	if found := k.shared[budget]; found != nil {
		return found
	}
	made := keyed.New(keyed.Options[*retry.Bucket]{
		New:  func(string) *retry.Bucket { return retry.NewBucket(budget) },
		Idle: func(b *retry.Bucket) bool { return b.FullAt(mono.Now()) },
	})
	if budget.Shared {
		k.shared[budget] = made
	}
	return made
}

// bucketKey names the bucket that a level keeps for a target.
func (l layer[P]) bucketKey(target string, budget retry.Budget) string {
	if budget.Shared {
		return target
	}
	return l.level.key(target)
}

// newBulkheads returns the bulkheads of a level's keys. The config was checked.
func newBulkheads(config bulkhead.Config) *keyed.Registry[*bulkhead.Bulkhead] {
	return keyed.New(keyed.Options[*bulkhead.Bulkhead]{
		New: func(key string) *bulkhead.Bulkhead {
			b, _ := bulkhead.New(key, config)
			return b
		},
		Idle: (*bulkhead.Bulkhead).Idle,
	})
}

// owned reports whether the layer is in force and was set by the entry key.
func (l layer[P]) owned(key string) bool { return l.policy != nil && l.level.name == key }
