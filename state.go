package holdfast

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// state is what the layers of a method keep for one target. A layer that is off
// has none: nil.
type state struct {
	at       mono.Instant // of the look-up
	breaker  *breaker.Breaker
	outer    *breaker.Breaker // of the target, where breaker is a part's
	bulkhead *bulkhead.Bulkhead
	bucket   *retry.Bucket
}

// stateSlot remembers the last look-up of a state.
type stateSlot struct{ atomic.Pointer[state] }

// stateAge is how long a look-up is good for. The registries keep what they have
// handed out for longer than that.
const stateAge = time.Second

// state returns what the layers keep for a call. It asks the registries once a
// second for each target, so that they know what is in use, and not for each
// call.
func (m *Method) state(info call.Info, now mono.Instant) *state {
	key := info.Target
	if m.narrow {
		key += "|" + info.Method + "|" + info.Resource
	}
	slot := m.states.For(key, now)
	if s := slot.Load(); s != nil && now.Sub(s.at) < stateAge {
		return s
	}
	s := &state{at: now}
	if l := &m.breaker; l.policy != nil {
		key, outer := l.level.breakerKeys(info, l.policy.Scope)
		s.breaker = l.level.breakers.ForAt(key, now)
		if outer != "" {
			s.outer = l.level.breakers.ForAt(outer, now)
		}
	}
	if l := &m.bulkhead; l.policy != nil {
		s.bulkhead = l.level.bulkheads.For(l.level.bulkheadKey(info, l.policy.Scope), now)
	}
	if l := &m.retry; l.policy != nil {
		s.bucket = l.level.budgets.For(l.level.key(info.Target), now)
	}
	slot.Store(s)
	return s
}

// part names the part of the target that a call is for.
func part(info call.Info) string {
	if info.Resource != "" {
		return info.Resource
	}
	return info.Method
}

// key names the state that a level keeps for a target: "target" for Default,
// "target|/pkg.S/M" for an entry's own.
func (l *level) key(target string) string {
	if l.name == "" {
		return target
	}
	return target + "|" + l.name
}

// breakerKeys names the breakers of a call: its own and, with TwoLevel, the
// target's.
func (l *level) breakerKeys(info call.Info, scope breaker.Scope) (key, outer string) {
	whole := l.key(info.Target)
	switch scope {
	case breaker.PerMethod:
		return info.Target + "|" + info.Method, ""
	case breaker.TwoLevel:
		if inner := info.Target + "|" + part(info); inner != whole {
			return inner, whole
		}
	}
	return whole, ""
}

func (l *level) bulkheadKey(info call.Info, scope bulkhead.Scope) string {
	if scope == bulkhead.PerMethod {
		return info.Target + "|" + info.Method
	}
	return l.key(info.Target)
}
