package breaker

import "github.com/holdfast-go/holdfast/internal/mono"

// ForceOpen refuses every call until Release or Reset: no clock, probe or late
// result ends it. The reason is shown in errors and transitions. On a breaker
// that is forced open it replaces the reason.
func (b *Breaker) ForceOpen(reason string) { b.forceOpen(reason, mono.Now()) }

// Release ends a forced open: the breaker is open for a full first cooldown. On
// a breaker that is not forced open it does nothing.
func (b *Breaker) Release() { b.release(mono.Now()) }

// Disable makes the breaker admit every call and judge none; it still measures.
// On a breaker that is forced open it does nothing.
func (b *Breaker) Disable() { b.disable(mono.Now()) }

// Enable ends Disable: the breaker is closed and empty. On a breaker that is
// not disabled it does nothing.
func (b *Breaker) Enable() { b.enable(mono.Now()) }

// Reset makes the breaker closed and empty, whatever its state, without a ramp.
// Results of attempts in flight no longer count.
func (b *Breaker) Reset() { b.reset(mono.Now()) }

func (b *Breaker) forceOpen(reason string, now mono.Instant) {
	b.command(now, func(b *Breaker, ep *episode) {
		next := newStop(b, ep.rules, ForcedOpen, CauseForced)
		next.out.err.note, next.out.err.why, next.out.since = reason, ReasonForced, now
		if ep.state() == ForcedOpen {
			next.out.since = ep.out.since
			next.follow(ep, 0)
			b.now.Store(next)
			return
		}
		b.change(ep, next, ReasonForced, reason)
	})
}

func (b *Breaker) release(now mono.Instant) {
	b.command(now, func(b *Breaker, ep *episode) {
		if ep.state() == ForcedOpen {
			b.open(ep, ReasonReleased, 1, ep.rules.spread(), now, 0)
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
		}
	})
}

func (b *Breaker) reset(now mono.Instant) {
	b.command(now, func(b *Breaker, ep *episode) { b.close(ep, Closed, ReasonReset, now) })
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
