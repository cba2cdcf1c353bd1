package holdfast

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Method is for the kit's own adapters: the policy in force for one entry of a kit's
// table, each layer inherited from where it was set. They begin calls with it.
type Method struct {
	key   string
	wire  string // the protocol's name
	field string // the entry as a user would look for it

	safety     call.Safety
	safetyFrom string
	ownSafety  bool // outranks what the wire declares

	fallback  layer[fallback.Policy]
	retry     layer[retry.Policy]
	breaker   layer[breaker.Config]
	timeout   layer[timeout.Limits]
	bulkhead  layer[bulkhead.Config]
	classify  func(context.Context, call.Info, call.Result) call.Result
	inForce   inForce // what of it an override may replace
	*watchers         // of the same edition

	states *keyed.Registry[*stateSlot]
	latest atomic.Pointer[state] // the last look-up made for any target; nil if narrow
	tally  atomic.Pointer[Tally] // that of the first call since calls are counted
	narrow bool                  // a layer has a scope narrower than the target
}

// layer is one layer in force. policy is nil if it is switched off.
type layer[P any] struct {
	policy *P
	from   string // the field that set it, for texts
	level  *level // what owns its state
}

// source is one place that layers are inherited from.
type source struct {
	key    string // table key, "" for Default and Standard
	field  string // as a user would look for it
	policy Policy
}

// resolve returns the effective policy of key: each layer from the first of the
// chain that sets it, then from Default, then from Standard.
func (d *draft) resolve(key string, chain []source) *Method {
	sources := append(append([]source(nil), chain...),
		source{"", "Default", d.config.Default}, source{"", "Standard", standard})
	m := &Method{key: key, field: sources[0].field, watchers: &d.watchers}
	m.fallback = pick(d, sources, func(p Policy) *fallback.Policy { return p.Fallback })
	m.retry = pick(d, sources, func(p Policy) *retry.Policy { return p.Retry })
	m.breaker = pick(d, sources, func(p Policy) *breaker.Config { return p.Breaker })
	m.timeout = pick(d, sources, func(p Policy) *timeout.Limits { return p.Timeout })
	m.bulkhead = pick(d, sources, func(p Policy) *bulkhead.Config { return p.Bulkhead })
	m.inForce.fallback, m.inForce.retry, m.inForce.limits = m.fallback.policy, m.retry.policy, m.timeout.policy
	m.inForce.complete()
	m.narrow = m.breaker.policy != nil && m.breaker.policy.Scope != breaker.PerTarget ||
		m.bulkhead.policy != nil && m.bulkhead.policy.Scope != bulkhead.PerTarget
	m.states = keyed.New(keyed.Options[*stateSlot]{New: func(string) *stateSlot { return new(stateSlot) }})
	for _, s := range sources {
		if m.safety == call.SafetyUnknown && s.policy.Safety != call.SafetyUnknown {
			m.safety, m.safetyFrom = s.policy.Safety, s.field
		}
		if m.classify == nil {
			m.classify = s.policy.Classify
		}
	}
	return m
}

// pick returns one layer of a chain of sources, the last of which sets it.
func pick[P any, PP interface {
	*P
	IsOff() bool
}](d *draft, sources []source, of func(Policy) *P) layer[P] {
	for _, s := range sources {
		p := of(s.policy)
		switch {
		case p == nil:
			continue
		case PP(p).IsOff():
			return layer[P]{from: s.field}
		}
		return layer[P]{p, s.field, d.level(s.key)}
	}
	panic("holdfast: Standard leaves a layer out")
}

// check returns the faults of layers that do not fit each other.
func (m *Method) check() check.Faults {
	var faults check.Faults
	limits, config := m.timeout.policy, m.breaker.policy
	if config == nil {
		return nil
	}
	if limits == nil || limits.Attempt == 0 {
		if most := (breaker.Config{}).WithDefaults().ProbeTimeout; config.ProbeTimeout == 0 && config.ProbeLatency > most {
			faults.Add("Breaker.ProbeLatency", config.ProbeLatency,
				"from %s, must not exceed %v, which ends a probe without ProbeTimeout and Timeout.Attempt", m.breaker.from, most)
		}
		return faults
	}
	// A window shorter than two attempts cannot hold enough results of a
	// dependency that answers nothing.
	if span := config.WithDefaults().Window.Span; span > 0 && span < 2*limits.Attempt {
		faults.Add("Breaker.Window.Span", span, "from %s, must be at least twice Timeout.Attempt = %v, from %s",
			m.breaker.from, limits.Attempt, m.timeout.from)
	}
	if latency := config.ProbeLatency; config.ProbeTimeout == 0 && latency > limits.Attempt {
		faults.Add("Breaker.ProbeLatency", latency, "from %s, must not exceed Timeout.Attempt = %v, from %s, which ends the probe",
			m.breaker.from, limits.Attempt, m.timeout.from)
	}
	return faults
}

// safetyOf returns what repeating a call may do, from the most to the least
// particular statement.
func (m *Method) safetyOf(declared call.Safety) call.Safety {
	safety, _ := m.saidSafety(declared)
	return safety
}

// sayer is who says what repeating a call may do.
type sayer uint8

const (
	nobody sayer = iota
	theWire
	theTable
)

// saidSafety is safetyOf, and who says so.
func (m *Method) saidSafety(declared call.Safety) (call.Safety, sayer) {
	switch {
	case declared != call.SafetyUnknown && !m.ownSafety:
		return declared, theWire
	case m.safety == call.SafetyUnknown:
		return call.Unsafe, nobody
	}
	return m.safety, theTable
}
