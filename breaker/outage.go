package breaker

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// outage is what an episode needs that refuses: open, half-open, forced open,
// and closed during a ramp. Guarded by Breaker.mu where it changes.
type outage struct {
	err OpenError

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

	group *Group // that dropped the breaker, if it is retired
}

// lease is one probe in flight.
type lease struct {
	id       uint32
	answered bool
	start    mono.Instant
	took     time.Duration // to the answer
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
func spread() float64 { return 2*rand.Float64() - 1 }

// open begins the nth opening in a row, dated at date; b.mu is held.
func (b *Breaker) open(old *episode, why Reason, nth int, spread float64, date mono.Instant, asked time.Duration) {
	next := newStop(b, old.rules, Open, CauseOpen)
	next.out.nth = nth
	next.out.lasts = old.rules.cooldown(nth, spread, asked)
	next.out.until = date.Add(next.out.lasts)
	if why != ReasonReleased {
		b.extra().opens.Add(1)
	}
	b.change(old, next, why, "")
}

// close begins a closed or disabled episode, dated at date; b.mu is held.
func (b *Breaker) close(old *episode, state State, why Reason, date mono.Instant) {
	next := &episode{}
	newClosed(next, old.rules, state, date)
	if why == ReasonRecovered && old.rules.cfg.RampUp > 0 {
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
	why := ReasonCooldownOver
	if now < ep.out.until {
		why = ReasonProbeForced
	}
	next = newStop(b, ep.rules, HalfOpen, CauseHalfOpen)
	next.out.nth = ep.out.nth
	next.out.spread = spread()
	b.change(ep, next, why, "")
	id = next.out.lend(now)
	b.unlockKeeping(next, id)
	return id, next
}

// takeProbe takes a free slot of the half-open episode ep. It returns id 0 if
// there is none; over says that the episode is.
func (b *Breaker) takeProbe(ep *episode, now mono.Instant) (id uint32, over bool) {
	b.mu.Lock()
	if b.now.Load() == ep {
		b.settle(ep, now)
	}
	if b.now.Load() != ep {
		b.unlock()
		return 0, true
	}
	if !ep.out.hasRoom(ep.rules) {
		b.unlock()
		return 0, false
	}
	id = ep.out.lend(now)
	b.unlockKeeping(ep, id)
	return id, false
}

// hasRoom reports whether another probe may be admitted.
func (o *outage) hasRoom(r *rules) bool {
	n := len(o.leases)
	if r.cfg.ProbeRate > 0 {
		n += o.good + o.bad // the rule wants so many results and no more
	}
	return n < r.cfg.Probes
}

// lend begins a lease.
func (o *outage) lend(now mono.Instant) uint32 {
	o.lastID++
	o.leases = append(o.leases, lease{id: o.lastID, start: now})
	return o.lastID
}

// find returns the index of a lease, or -1.
func (o *outage) find(id uint32) int {
	for i := range o.leases {
		if o.leases[i].id == id {
			return i
		}
	}
	return -1
}

// firstExpired returns the lease whose end comes first, or -1 if that is after
// now.
func firstExpired(leases []lease, r *rules, now mono.Instant) int {
	first := -1
	for i := range leases {
		if now.Sub(leases[i].start) < r.cfg.ProbeTimeout {
			continue
		}
		if first < 0 || leases[i].start < leases[first].start {
			first = i
		}
	}
	return first
}

// settle finds the leases that have run out, in the order in which they did;
// b.mu is held.
func (b *Breaker) settle(ep *episode, now mono.Instant) {
	if ep.state() != HalfOpen {
		return
	}
	for b.now.Load() == ep {
		i := firstExpired(ep.out.leases, ep.rules, now)
		if i < 0 {
			return
		}
		l, took := ep.out.leases[i], ep.rules.cfg.ProbeTimeout
		end := l.start.Add(took)
		if l.answered {
			took = l.took
		}
		b.finish(ep, i, l.expired(ep.rules), took, end, 0)
	}
}

// expired is the result of a lease that has run out.
func (l *lease) expired(r *rules) ProbeOutcome {
	if !l.answered {
		return ProbeExpired
	}
	return r.probeSuccess(l.took)
}

// probeSuccess is the result of a success that took so long to be answered.
func (r *rules) probeSuccess(took time.Duration) ProbeOutcome {
	if limit := r.cfg.ProbeLatency; limit > 0 && took > limit {
		return ProbeSlow
	}
	return ProbeSucceeded
}

// finish ends lease i with a result dated at date; b.mu is held.
func (b *Breaker) finish(ep *episode, i int, how ProbeOutcome, took time.Duration, date mono.Instant, asked time.Duration) {
	o := ep.out
	o.leases = append(o.leases[:i], o.leases[i+1:]...)
	b.countProbe(how)
	b.queueProbe(ep, how, took)
	switch how {
	case ProbeNeutral:
		return
	case ProbeSucceeded:
		o.good++
	default:
		o.bad++
	}
	switch ep.rules.decide(o.good, o.bad) {
	case Closed:
		b.close(ep, Closed, ReasonRecovered, date)
	case Open:
		b.open(ep, how.reason(), o.nth+1, o.spread, date, asked)
	}
}

// decide returns where so many probe results lead: Closed, Open, or HalfOpen if
// that is not yet known.
func (r *rules) decide(good, bad int) State {
	mayFail := 0
	if r.cfg.ProbeRate > 0 {
		mayFail = r.cfg.Probes - r.probesNeeded
	}
	switch {
	case bad > mayFail:
		return Open
	case good >= r.probesNeeded:
		return Closed
	}
	return HalfOpen
}

// probeAnswered notes that a probe has been answered.
func (b *Breaker) probeAnswered(ep *episode, id uint32, took time.Duration, now mono.Instant) {
	b.mu.Lock()
	if b.now.Load() == ep {
		b.settle(ep, now)
		if i := ep.out.find(id); i >= 0 {
			ep.out.leases[i].answered = true
			ep.out.leases[i].took = took
		}
	}
	b.unlock()
}

// endProbe books the end of a probe.
func (b *Breaker) endProbe(t *Ticket, v Verdict, asked time.Duration, now mono.Instant) {
	b.mu.Lock()
	defer b.unlock()
	ep := t.ep
	if b.now.Load() != ep {
		return
	}
	b.settle(ep, now)
	if b.now.Load() != ep {
		return
	}
	i := ep.out.find(t.lease())
	if i < 0 {
		return
	}
	took := time.Duration(t.at)
	if t.mark&answered == 0 {
		took = now.Sub(t.at)
	}
	how := ProbeFailed
	switch v {
	case Success:
		how = ep.rules.probeSuccess(took)
	case Neutral:
		how = ProbeNeutral
	}
	b.finish(ep, i, how, took, now, asked)
}

// dropProbe gives the slot of a probe back that was never made.
func (b *Breaker) dropProbe(ep *episode, id uint32) {
	b.mu.Lock()
	if b.now.Load() == ep {
		if i := ep.out.find(id); i >= 0 {
			ep.out.leases = append(ep.out.leases[:i], ep.out.leases[i+1:]...)
		}
	}
	b.unlock()
}
