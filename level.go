package holdfast

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// level owns the state that belongs to one entry of the table, or to Default:
// methods that inherit a layer share the state of the level that set it. It is
// not written to once calls can find it; an update makes another, which takes
// over what goes on.
type level struct {
	name      string // table key, "" for Default
	oneMethod bool   // the key names a single method

	// The layers in force that the level sets; nil is none.
	breaker  *breaker.Config
	bulkhead *bulkhead.Config
	retry    *retry.Policy

	probeTimeout time.Duration // for a breaker that sets none

	breakers  *breaker.Group // without breakers, if the layer is gone
	bulkheads *bulkheads
	parts     *bulkheads // within bulkheads, where the scope has two levels
	budgets   *budgets
	latencies *latencies // nil if no percentile is asked for
}

// own notes at the level of m's own key which layers it sets. oneMethod says that
// the key names a single method.
func (m *Method) own(oneMethod bool) {
	if l := m.breaker; l.owned(m.key) && l.level.breaker == nil {
		l.level.breaker, l.level.oneMethod = l.policy, oneMethod
		l.level.probeTimeout = m.probeTimeout()
	}
	if l := m.bulkhead; l.owned(m.key) && l.level.bulkhead == nil {
		l.level.bulkhead, l.level.oneMethod = l.policy, oneMethod
	}
	if l := m.retry; l.owned(m.key) && l.level.retry == nil {
		l.level.retry = l.policy
	}
}

// owned reports whether the layer is in force and was set by the entry key.
func (l layer[P]) owned(key string) bool { return l.policy != nil && l.level.name == key }

// probeTimeout returns the length of a probe's lease: the breaker's own or else
// that of an attempt; 0 if neither is set.
func (m *Method) probeTimeout() time.Duration {
	if set := m.breaker.policy.ProbeTimeout; set != 0 || m.timeout.policy == nil {
		return set
	}
	return m.timeout.policy.Attempt
}

// breakerConfig returns what the level's breakers run by.
func (k *Kit) breakerConfig(l *level) breaker.Config {
	config := *l.breaker
	config.ProbeTimeout = l.probeTimeout
	config.Hooks = k.watch(config.Hooks)
	return config
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
		return escaped(target)
	}
	return under(target, l.name)
}

// under names a part of a target.
func under(target, part string) string { return escaped(target) + "|" + part }

// escaped frees a target of bars, so that no two names are the same and a name
// can be told from that of a part.
func escaped(target string) string { return strings.ReplaceAll(target, "|", "%7C") }

// keys names what a level keeps for a call by the scope of a layer: the part's or
// the target's own, and with two levels the target's beside it.
func (l *level) keys(info call.Info, perMethod, twoLevel bool) (key, outer string) {
	whole := l.key(info.Target)
	switch inner := under(info.Target, part(info)); {
	case perMethod:
		return under(info.Target, info.Method), ""
	case twoLevel && inner != whole:
		return inner, whole
	}
	return whole, ""
}

// whole reports whether key, which the level has made, names a target rather than
// a part of one.
func (l *level) whole(key string) bool {
	_, part, isPart := strings.Cut(key, "|")
	return part == l.name && isPart == (l.name != "")
}

// names reports whether the level still makes such a key under a scope.
func (l *level) names(key string, perTarget, perMethod bool) bool {
	switch whole := l.whole(key); {
	case perTarget:
		return whole
	case perMethod:
		return !whole || l.oneMethod
	}
	return true
}
