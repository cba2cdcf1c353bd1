package breaker

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Breaker is one circuit breaker. All methods may be called by several
// goroutines at once, and from its hooks.
type Breaker struct {
	now  atomic.Pointer[episode] // the present episode
	key  string
	mu   sync.Mutex // held for every step from one episode to the next
	more atomic.Pointer[more]
}

// more is what a breaker needs that has seen something else than successes and
// failures; made when first needed.
type more struct {
	neutral     atomic.Uint64
	did, shadow acts

	standing

	// Events not yet delivered, and whether somebody is at it; see deliver.
	events     []func()
	delivering bool
}

// start is a breaker with its first episode, in one object.
type start struct {
	Breaker
	first episode
}

// unread stands for a reading of the clock that nobody has needed yet.
func unread() mono.Instant { return mono.First() }

func at(now mono.Instant) mono.Instant {
	if now == unread() {
		return mono.Now()
	}
	return now
}

// New returns a closed breaker, named for what it protects. It returns an error
// that names every fault of c; that c is from [Off] is one, for there is no breaker to
// make then.
func New(name string, c Config) (*Breaker, error) {
	return NewAt(name, c, mono.Now(), rand.Float64)
}

// NewAt is for the kit's own packages: New for a caller with a clock of its own, a
// simulation which is to come out the same each time. The jitter is made of what draw
// returns, at least 0 and less than 1; it is called with a lock held.
func NewAt(name string, c Config, now mono.Instant, draw func() float64) (*Breaker, error) {
	if err := c.faults("there is no breaker to make").Err("breaker"); err != nil {
		return nil, err
	}
	r := compile(c)
	r.draw = draw
	return newBreaker(name, r, now), nil
}

func newBreaker(key string, r *rules, now mono.Instant) *Breaker {
	b := &start{Breaker: Breaker{key: key}}
	newClosed(&b.first, r, Closed, now)
	b.now.Store(&b.first)
	return &b.Breaker
}

// Name returns the name given to New, or the key in a Group.
func (b *Breaker) Name() string { return b.key }

// Allow admits a call or refuses it. If it admits, the ticket's Done must be
// called once the attempt has ended, whatever its end. If it refuses, the error
// is an *OpenError, which matches ErrOpen.
//
// It takes no lock and allocates nothing while the breaker is closed or open.
func (b *Breaker) Allow() (Ticket, error) {
	ep := b.now.Load()
	flags := ep.flags.Load() & (rampFlag | timedFlag | sharedFlag)
	if flags == 0 && !ep.over() {
		return Ticket{b: b, ep: ep}, nil
	}
	if flags == sharedFlag && !ep.over() {
		ep.rules.fleet.touch()
		return Ticket{b: b, ep: ep}, nil
	}
	return b.allow(mono.Now(), false)
}

// AllowAt is for the kit's own packages: Allow for a caller that has read the clock.
func (b *Breaker) AllowAt(now mono.Instant) (Ticket, error) {
	if ep := b.now.Load(); ep.plain() {
		return Ticket{b: b, ep: ep, at: now}, nil
	}
	return b.allow(now, false)
}

// Probe admits a probe although the cooldown is not over, for a caller that has
// nowhere else to go. In the other states it is Allow: no probe passes a
// breaker that is forced open, nor exceeds Probes.
func (b *Breaker) Probe() (Ticket, error) { return b.allow(mono.Now(), true) }

func (b *Breaker) allow(now mono.Instant, forced bool) (Ticket, error) {
	for {
		ep := b.present()
		if f := ep.rules.fleet; f != nil {
			f.touch()
		}
		switch ep.state() {
		case Closed, Disabled:
			s, slot := ep.stall, int64(0)
			if s != nil {
				slot = ep.rules.slotAt(now)
				if ep.state() == Closed && s.silent(ep.rules, slot) {
					b.tripStalled(ep, now)
					continue
				}
			}
			if ep.flags.Load()&rampFlag != 0 && !ep.rampAdmits(now) {
				return b.refuse(ep, CauseRamp)
			}
			if s == nil {
				return Ticket{b: b, ep: ep, at: now}, nil
			}
			s.begin(slot)
			return Ticket{b: b, ep: ep, at: now, mark: mark{watched}}, nil
		case Open:
			if now.Before(ep.out.until) && !forced {
				return b.refuse(ep, CauseOpen)
			}
			if ep.rules.fleet != nil {
				return b.seek(ep, now, forced)
			}
			if id, next := b.halfOpen(ep, now, forced); id != 0 {
				return Ticket{b: b, ep: next, at: now, mark: probeMark(id)}, nil
			}
		case HalfOpen:
			if ep.rules.fleet != nil {
				return b.seek(ep, now, forced)
			}
			if id, over := b.takeProbe(ep, now); id != 0 {
				return Ticket{b: b, ep: ep, at: now, mark: probeMark(id)}, nil
			} else if !over {
				return b.refuse(ep, CauseHalfOpen)
			}
		case ForcedOpen:
			return b.refuse(ep, CauseForced)
		case retired:
			return b.heir(now).allow(now, forced)
		}
	}
}

// await returns once whoever holds the lock for a transition has made it.
func (b *Breaker) await() {
	b.mu.Lock()
	//lint:ignore SA2001 The lock is taken only to wait for its holder.
	b.mu.Unlock()
}

// refuse counts a refusal and returns it; a shadow lets the call pass instead,
// with a ticket that books nothing.
func (b *Breaker) refuse(ep *episode, why Cause) (Ticket, error) {
	b.extra().acts(ep.rules).refused[why].Add()
	if h := ep.rules.cfg.Hooks.Refused; h != nil {
		h(&ep.out.err)
	}
	if ep.rules.cfg.Shadow {
		return Ticket{}, nil
	}
	return Ticket{}, &ep.out.err
}

func (b *Breaker) extra() *more {
	if m := b.more.Load(); m != nil {
		return m
	}
	b.more.CompareAndSwap(nil, &more{})
	return b.more.Load()
}
