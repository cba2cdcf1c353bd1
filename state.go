package holdfast

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/latency"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// state is what the layers of a method keep for one target. A layer that is off
// has none: nil.
type state struct {
	at       mono.Instant // of the look-up
	key      string       // that was looked up
	breaker  *breaker.Breaker
	bulkhead *bulkhead.Bulkhead
	bucket   *retry.Bucket
	latency  *latency.Record // if hedges ask for a percentile

	// Those of the target, where the ones above are a part's.
	outerBreaker  *breaker.Breaker
	outerBulkhead *bulkhead.Bulkhead
}

// stateSlot remembers the last look-up of a state. Beyond what a registry keeps, many
// keys share one.
type stateSlot struct{ atomic.Pointer[state] }

// stateAge is how long a look-up is good for. The registries keep what they have
// handed out for longer than that.
const stateAge = time.Second

// state returns what the layers keep for a call. It asks the registries once a
// second for each target, so that they know what is in use, and not for each
// call.
func (m *Method) state(info *call.Info, now mono.Instant) *state {
	if s := m.latest.Load(); s != nil && s.key == info.Target && now.Sub(s.at) < stateAge {
		return s // most kits have one target
	}
	return m.look(*info, now)
}

func (m *Method) look(info call.Info, now mono.Instant) *state {
	key := info.Target
	if m.narrow {
		key += "\x00" + info.Method + "\x00" + info.Resource
	}
	slot := m.states.For(key, now)
	if s := slot.Load(); s != nil && s.key == key && now.Sub(s.at) < stateAge {
		return s
	}
	m.counting.ask()
	s := &state{at: now, key: key}
	if l := &m.breaker; l.policy != nil {
		key, outer := l.level.keys(info, l.policy.Scope == breaker.PerMethod, l.policy.Scope == breaker.TwoLevel)
		s.breaker = l.level.breakers.ForAt(key, now)
		if outer != "" {
			s.outerBreaker = l.level.breakers.ForAt(outer, now)
		}
	}
	if l := &m.bulkhead; l.policy != nil {
		key, outer := l.level.keys(info, l.policy.Scope == bulkhead.PerMethod, l.policy.Scope == bulkhead.TwoLevel)
		if outer == "" {
			s.bulkhead = l.level.bulkheads.For(key, now)
		} else {
			s.bulkhead, s.outerBulkhead = l.level.parts.For(key, now), l.level.bulkheads.For(outer, now)
		}
	}
	if l := &m.retry; l.policy != nil {
		s.bucket = l.level.budgets.For(l.bucketKey(info.Target, l.policy.Budget), now)
		s.latency = m.latencyFor(info, now)
	}
	slot.Store(s)
	if !m.narrow {
		m.latest.Store(s)
	}
	return s
}
