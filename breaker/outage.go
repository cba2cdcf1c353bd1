package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// outage is what an episode needs that refuses: open, half-open, forced open,
// and closed during a ramp. Guarded by Breaker.mu where it changes.
type outage struct {
	err   OpenError
	since mono.Instant

	// Open: nth opening in a row, which lasts until.
	nth   int
	until mono.Instant
	lasts time.Duration

	// HalfOpen: nth as above. spread is that of the cooldown to come if a
	// probe fails; drawn in advance, so that a look at the breaker can tell it.
	spread    float64
	leases    []lease
	lastID    uint32
	good, bad int // probes that succeeded and failed

	ramp ramp

	share share // what a fleet has to do with it

	group *Group // that dropped the breaker, if it is retired
}

// stop is an episode with its outage, in one object.
type stop struct {
	episode
	outage
}

func newStop(b *Breaker, r *rules, state State, why Cause) *episode {
	s := &stop{}
	s.rules, s.id, s.out = r, uint32(state), &s.outage
	s.sum.Store(dead)
	s.err = OpenError{b: b, ep: &s.episode, state: state, cause: why}
	return &s.episode
}

// spread draws where in the range of the jitter a cooldown lies.
func (r *rules) spread() float64 { return 2*r.draw() - 1 }

// open begins the nth opening in a row, dated at date, and returns it; b.mu is
// held.
func (b *Breaker) open(old *episode, why Reason, nth int, spread float64, date mono.Instant, asked time.Duration) *episode {
	lasts := old.rules.cooldown(nth, spread, asked)
	if why != ReasonReleased {
		b.extra().acts(old.rules).opens.Add(1)
	}
	return b.openUntil(old, why, nth, lasts, date, date.Add(lasts))
}

// openUntil is open with the end of the cooldown given, which may not be all of it.
func (b *Breaker) openUntil(old *episode, why Reason, nth int, lasts time.Duration, date, until mono.Instant) *episode {
	next := newStop(b, old.rules, Open, CauseOpen)
	next.out.nth, next.out.lasts, next.out.since, next.out.until = nth, lasts, date, until
	if old.rules.fleet != nil {
		next.out.share.gen = b.extra().generation
		b.knows(&next.out.share, old.rules.fleet)
	}
	b.change(old, next, why, "")
	return next
}

// close begins a closed or disabled episode, dated at date; b.mu is held.
func (b *Breaker) close(old *episode, state State, why Reason, date mono.Instant) {
	next := &episode{}
	newClosed(next, old.rules, state, date)
	if (why == ReasonRecovered || why == ReasonSharedRecovered) && old.rules.cfg.RampUp > 0 {
		next.startRamp(b, date)
	}
	b.change(old, next, why, "")
}

// halfOpen turns the open episode ep into a half-open one with its first probe.
// It returns 0 if ep is over.
func (b *Breaker) halfOpen(ep *episode, now mono.Instant, forced bool) (id uint32, next *episode) {
	b.mu.Lock()
	if b.now.Load() != ep {
		b.unlock()
		return 0, nil
	}
	next, id = b.halfOpenLocked(ep, now, lock{})
	b.unlockKeeping(next, id)
	return id, next
}

// halfOpenLocked makes the step to half-open with the first probe; b.mu is held.
func (b *Breaker) halfOpenLocked(ep *episode, now mono.Instant, l lock) (next *episode, id uint32) {
	why := ReasonCooldownOver
	if now.Before(ep.out.until) {
		why = ReasonProbeForced
	}
	next = newStop(b, ep.rules, HalfOpen, CauseHalfOpen)
	next.out.nth, next.out.since = ep.out.nth, now
	next.out.spread = next.rules.spread()
	b.change(ep, next, why, "")
	return next, next.out.lend(next.rules, now, l)
}
