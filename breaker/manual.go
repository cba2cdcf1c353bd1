package breaker

import "github.com/holdfast-go/holdfast/internal/mono"

// ForceOpen refuses every call until Release or Reset: no clock, probe or late
// result ends it. The reason is shown in errors and transitions. On a breaker
// that is forced open it replaces the reason. It is about this process's breaker
// alone; for that of all workers see [Fleet.ForceOpen].
func (b *Breaker) ForceOpen(reason string) { b.forceOpen(reason, mono.Now()) }

// Release ends a forced open: the breaker is open for a full first cooldown. On
// a breaker that is not forced open it does nothing, and it does not end what a
// [Fleet] forces.
func (b *Breaker) Release() { b.release(mono.Now()) }

// Disable makes the breaker admit every call and judge none; it still measures.
// On a breaker that is forced open it does nothing.
func (b *Breaker) Disable() { b.disable(mono.Now()) }

// Enable ends Disable: the breaker is closed and empty. On a breaker that is
// not disabled it does nothing.
func (b *Breaker) Enable() { b.enable(mono.Now()) }

// Reset makes the breaker closed and empty, whatever its state, without a ramp.
// Results of attempts in flight no longer count. It is about this process's
// breaker alone: what a [Fleet] forces stays, and a fleet that has it open has it
// open elsewhere.
func (b *Breaker) Reset() { b.reset(mono.Now()) }

func (b *Breaker) forceOpen(reason string, now mono.Instant) {
	b.command(now, func(b *Breaker, ep *episode) {
		held := ep.forces()
		held.here = &reason
		b.force(ep, held, ReasonForced, now)
	})
}

// forces are the reasons given to ForceOpen, here and of the fleet; nil if it is
// not forced.
type forces struct{ here, fleet *string }

func (ep *episode) forces() (f forces) {
	if ep.state() == ForcedOpen {
		f = ep.out.share.forces
	}
	return f
}

// force makes b forced open by held, which is not empty; b.mu is held.
func (b *Breaker) force(ep *episode, held forces, why Reason, now mono.Instant) {
	next := newStop(b, ep.rules, ForcedOpen, CauseForced)
	next.out.share.forces, next.out.since = held, now
	next.out.err.why, next.out.err.note = ReasonForced, ""
	switch {
	case held.here == nil:
		next.out.err.why, next.out.err.note = ReasonFleetForced, *held.fleet
	case held.fleet == nil || *held.fleet == "":
		next.out.err.note = *held.here
	default:
		next.out.err.note = *held.here + "; " + *held.fleet
	}
	if ep.state() == ForcedOpen {
		next.out.since = ep.out.since
		next.follow(ep, 0)
		b.now.Store(next)
		return
	}
	b.change(ep, next, why, next.out.err.note)
}

func (b *Breaker) release(now mono.Instant) {
	b.command(now, func(b *Breaker, ep *episode) {
		switch held := ep.forces(); {
		case held.here == nil:
		case held.fleet != nil:
			b.force(ep, forces{fleet: held.fleet}, ReasonReleased, now)
		default:
			b.open(ep, ReasonReleased, 1, ep.rules.spread(), now, 0).out.share.alone = true
			b.rejoinLocked(now)
		}
	})
}

func (b *Breaker) disable(now mono.Instant) {
	b.command(now, func(b *Breaker, ep *episode) {
		if ep.state() != ForcedOpen && ep.state() != Disabled {
			b.close(ep, Disabled, ReasonDisabled, now)
		}
	})
}

func (b *Breaker) enable(now mono.Instant) {
	b.command(now, func(b *Breaker, ep *episode) {
		if ep.state() == Disabled {
			b.close(ep, Closed, ReasonEnabled, now)
			b.rejoinLocked(now)
		}
	})
}

func (b *Breaker) reset(now mono.Instant) {
	b.command(now, func(b *Breaker, ep *episode) {
		if held := ep.forces(); held.fleet != nil {
			b.force(ep, forces{fleet: held.fleet}, ReasonReset, now)
			return
		}
		b.close(ep, Closed, ReasonReset, now)
	})
}

// command brings the breaker up to the present and then does what somebody
// asks of it, with the lock held.
func (b *Breaker) command(now mono.Instant, do func(*Breaker, *episode)) {
	b.mu.Lock()
	ep := b.now.Load()
	if ep.state() == retired {
		b.mu.Unlock()
		b.heir(now).command(now, do)
		return
	}
	defer b.unlock()
	b.settle(ep, now)
	ep.turn(now)
	do(b, b.now.Load())
}
