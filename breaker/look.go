package breaker

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Counts are the figures of a breaker.
type Counts struct {
	// Results, Failures and Slow are those in the window, without those that
	// have left it. They are 0 where there is no window, and in other states
	// than closed and disabled.
	Results, Failures, Slow int

	// Consecutive is the present row of failures, counted up to 2,047.
	Consecutive int

	// Unanswered is the number of attempts in flight that are not answered, if
	// the stall rule is set.
	Unanswered int

	// Probes is the number of probes in flight; ProbeSuccesses and
	// ProbeFailures are those counted in the present half-open state.
	Probes, ProbeSuccesses, ProbeFailures int

	// Totals grow for as long as the breaker lives.
	Totals Totals
}

// Totals are counters that never fall.
type Totals struct {
	// Opens counts the openings by a rule or a probe.
	Opens uint64

	// Neutral counts the neutral ends of attempts that were not probes.
	Neutral uint64

	// The ends of probes by outcome: ProbesFailed includes the slow ones.
	ProbesSucceeded, ProbesFailed, ProbesExpired, ProbesNeutral uint64

	// The refusals by cause; in a shadow the calls that would have been
	// refused.
	RefusedOpen, RefusedHalfOpen, RefusedForced, RefusedRamp uint64
}

// Counts returns the figures as of now. It changes nothing: what only a call
// would find, such as a lease that has run out, is not in them.
func (b *Breaker) Counts() Counts { return b.CountsAt(mono.Now()) }

// CountsAt is Counts for a caller that has read the clock.
func (b *Breaker) CountsAt(now mono.Instant) Counts {
	if h := b.heir(now); h != nil {
		return h.CountsAt(now)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ep := b.now.Load()
	sum := ep.sum.Load()
	if ep.spans != nil {
		sum = ep.spans.after(sum, ep.rules, now)
	}
	return b.counts(ep, sum)
}

// counts returns the figures of ep with its results in sum; b.mu is held.
func (b *Breaker) counts(ep *episode, sum uint64) (c Counts) {
	if ep.last != nil {
		sum -= ep.last.loss(ep.rules, callSeenOf(sum), false)
	}
	total, failed, slow := ep.tally(sum)
	c.Results, c.Failures, c.Slow = int(total), int(failed), int(slow)
	c.Consecutive = int(sum & rowMask >> rowShift)
	if ep.stall != nil {
		_, n := ep.stall.waiting(ep.rules, 0)
		c.Unanswered = int(max(n, 0))
	}
	if ep.state() == HalfOpen {
		c.Probes, c.ProbeSuccesses, c.ProbeFailures = len(ep.out.leases), ep.out.good, ep.out.bad
	}
	if m := b.more.Load(); m != nil {
		c.Totals = m.totals()
	}
	return c
}

func (m *more) totals() Totals {
	return Totals{
		Opens:           m.opens.Load(),
		Neutral:         m.neutral.Load(),
		ProbesSucceeded: m.probesOK.Load(),
		ProbesFailed:    m.probesFailed.Load(),
		ProbesExpired:   m.probesExpired.Load(),
		ProbesNeutral:   m.probesOther.Load(),
		RefusedOpen:     m.refused[CauseOpen].Load(),
		RefusedHalfOpen: m.refused[CauseHalfOpen].Load(),
		RefusedForced:   m.refused[CauseForced].Load(),
		RefusedRamp:     m.refused[CauseRamp].Load(),
	}
}

func (b *Breaker) countProbe(how ProbeOutcome) {
	m := b.extra()
	switch how {
	case ProbeSucceeded:
		m.probesOK.Add(1)
	case ProbeNeutral:
		m.probesOther.Add(1)
	case ProbeExpired:
		m.probesExpired.Add(1)
	default:
		m.probesFailed.Add(1)
	}
}

// State returns the state that the next call would find. It changes nothing.
func (b *Breaker) State() State { return b.StateAt(mono.Now()) }

// StateAt is State for a caller that has read the clock.
func (b *Breaker) StateAt(now mono.Instant) State {
	s := b.look(now)
	return s.state
}

// Generation returns the number of the present state; it grows with every
// transition.
func (b *Breaker) Generation() uint64 { return uint64(b.present().generation()) }

// present returns the present episode, and waits for a transition that has been
// decided but not made: whose result was dropped because of it must not see the
// state before.
func (b *Breaker) present() *episode {
	for {
		ep := b.now.Load()
		if s := ep.state(); s != Closed && s != Disabled || !ep.over() {
			return ep
		}
		b.await()
	}
}

// WouldAdmit reports whether the next call would be admitted. It takes no slot
// and changes nothing.
func (b *Breaker) WouldAdmit() bool { return b.RefusalAt(mono.Now()) == nil }

// RefusalAt returns nil if a call at now would be admitted, or else the
// *OpenError that it would get. It takes no slot and changes nothing.
func (b *Breaker) RefusalAt(now mono.Instant) error {
	ep := b.now.Load()
	if ep.rules.cfg.Shadow || ep.stall == nil && ep.flags.Load()&rampFlag == 0 && !ep.over() {
		return nil
	}
	s := b.look(now)
	switch {
	case s.admit:
		return nil
	case s.ep != nil:
		return &s.ep.out.err
	}
	return &OpenError{b: b, state: Open, cause: CauseOpen, until: s.until}
}

// sight is what the next call would find.
type sight struct {
	state State
	admit bool
	ep    *episode     // the one that would refuse, or nil for one
	until mono.Instant // that would begin with the call, and last until
}

// look tells what a call at now would find.
func (b *Breaker) look(now mono.Instant) sight {
	for {
		ep := b.present()
		switch ep.state() {
		case Closed, Disabled:
			switch {
			case ep.state() == Closed && ep.stall != nil && ep.stall.silent(ep.rules, ep.rules.slotAt(now)):
				return sight{state: Open, until: now.Add(ep.rules.cooldown(1, 0, 0))}
			case ep.flags.Load()&rampFlag != 0 && !ep.rampWould(now):
				return sight{state: Closed, ep: ep}
			}
			return sight{state: ep.state(), admit: true}
		case Open:
			if now < ep.out.until {
				return sight{state: Open, ep: ep}
			}
			return sight{state: HalfOpen, admit: true}
		case HalfOpen:
			if s, ok := b.lookHalfOpen(ep, now); ok {
				return s
			}
		case ForcedOpen:
			return sight{state: ForcedOpen, ep: ep}
		case retired:
			return b.heir(now).look(now)
		}
	}
}

// lookHalfOpen plays what settle would do. It returns false if ep is over.
func (b *Breaker) lookHalfOpen(ep *episode, now mono.Instant) (sight, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now.Load() != ep {
		return sight{}, false
	}
	r, o := ep.rules, outage{good: ep.out.good, bad: ep.out.bad, leases: ep.out.leases}
	for i := firstExpired(o.leases, r, now); i >= 0; i = firstExpired(o.leases, r, now) {
		l := o.leases[i]
		o.leases = slices.Delete(slices.Clone(o.leases), i, i+1)
		if l.expired(r) == ProbeSucceeded {
			o.good++
		} else {
			o.bad++
		}
		switch r.decide(o.good, o.bad) {
		case Closed:
			return sight{state: Closed, admit: true}, true
		case Open:
			until := l.start.Add(r.cfg.ProbeTimeout).Add(r.cooldown(ep.out.nth+1, ep.out.spread, 0))
			if now < until {
				return sight{state: Open, until: until}, true
			}
			return sight{state: HalfOpen, admit: true}, true
		}
	}
	if o.hasRoom(r) {
		return sight{state: HalfOpen, admit: true}, true
	}
	return sight{state: HalfOpen, ep: ep}, true
}
