package breaker

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// State returns the state that the next call would find. It changes nothing.
func (b *Breaker) State() State { return b.StateAt(mono.Now()) }

// StateAt is for the kit's own packages: State for a caller that has read the clock.
func (b *Breaker) StateAt(now mono.Instant) State {
	s := b.look(now)
	return s.state
}

// Generation returns the number of the present state; it grows with every
// transition.
func (b *Breaker) Generation() uint64 { return uint64(b.present().generation()) }

// Shadow reports whether the breaker refuses nothing, see [Config.Shadow].
func (b *Breaker) Shadow() bool { return b.now.Load().rules.cfg.Shadow }

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

// RefusalAt is for the kit's own packages: it returns nil if a call at now would be
// admitted, or else the *OpenError that it would get. It takes no slot and changes
// nothing.
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
	return &OpenError{b: b, state: Open, cause: CauseOpen, why: s.why, until: s.until}
}

// sight is what the next call would find.
type sight struct {
	state State
	admit bool
	ep    *episode     // the one that would refuse, or nil for one
	why   Reason       // that would begin with the call, for this reason,
	until mono.Instant // and last until then
}

// look tells what a call at now would find.
func (b *Breaker) look(now mono.Instant) sight {
	for {
		ep := b.present()
		switch ep.state() {
		case Closed, Disabled:
			switch {
			case ep.state() == Closed && ep.stall != nil && ep.stall.silent(ep.rules, ep.rules.slotAt(now)):
				return sight{state: Open, why: ReasonStalled, until: now.Add(ep.rules.cooldown(1, 0, 0))}
			case ep.flags.Load()&rampFlag != 0 && !ep.rampWould(now):
				return sight{state: Closed, ep: ep}
			}
			return sight{state: ep.state(), admit: true}
		case Open:
			if now.Before(ep.out.until) {
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
	if ep.out.share.waitedOut(now) {
		return sight{state: Closed, admit: true}, true
	}
	r, o := ep.rules, outage{good: ep.out.good, bad: ep.out.bad, leases: ep.out.leases}
	for i := firstEnd(o.leases); i >= 0 && !now.Before(o.leases[i].end); i = firstEnd(o.leases) {
		l := o.leases[i]
		o.leases = slices.Delete(slices.Clone(o.leases), i, i+1)
		how := l.expired(r)
		o.count(how)
		switch r.decide(o.good, o.bad) {
		case Closed:
			if r.fleet != nil { // not before the store has been asked
				return sight{state: HalfOpen, ep: ep}, true
			}
			return sight{state: Closed, admit: true}, true
		case Open:
			until := l.end.Add(r.cooldown(ep.out.nth+1, ep.out.spread, 0))
			if now.Before(until) {
				return sight{state: Open, why: how.reason(), until: until}, true
			}
			return sight{state: HalfOpen, admit: true}, true
		}
	}
	if r.fleet == nil && o.hasRoom(r) || r.fleet != nil && len(o.leases) == 0 && ep.out.share.free(now) {
		return sight{state: HalfOpen, admit: true}, true
	}
	return sight{state: HalfOpen, ep: ep}, true
}
