package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// lease is one probe in flight.
type lease struct {
	id       uint32
	answered bool
	end      mono.Instant
	length   time.Duration
	took     time.Duration // to the answer
	lock     lock          // of the fleet, if there is one
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
	id = ep.out.lend(ep.rules, now, lock{})
	b.unlockKeeping(ep, id)
	return id, false
}

// hasRoom reports whether another probe may be admitted.
func (o *outage) hasRoom(r *rules) bool {
	n := len(o.leases)
	if r.cfg.ProbeRate > 0 {
		n += o.good + o.bad // the rule wants that many results and no more
	}
	return n < r.cfg.Probes
}

// lend begins a lease.
func (o *outage) lend(r *rules, now mono.Instant, l lock) uint32 {
	o.lastID++
	length := r.cfg.ProbeTimeout
	o.leases = append(o.leases, lease{id: o.lastID, end: now.Add(length), length: length, lock: l})
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

// firstEnd returns the lease whose end comes first, or -1 if there is none.
func firstEnd(leases []lease) int {
	first := -1
	for i := range leases {
		if first < 0 || leases[i].end.Before(leases[first].end) {
			first = i
		}
	}
	return first
}

// settle finds the leases that have run out, in the order in which they did;
// b.mu is held.
func (b *Breaker) settle(ep *episode, now mono.Instant) {
	for ep.state() == HalfOpen && b.now.Load() == ep {
		if s := &ep.out.share; s.waitedOut(now) {
			b.close(ep, Closed, ReasonRecovered, s.patience)
			return
		}
		i := firstEnd(ep.out.leases)
		if i < 0 || now.Before(ep.out.leases[i].end) {
			return
		}
		l := ep.out.leases[i]
		took := l.length
		if l.answered {
			took = l.took
		}
		b.finish(ep, i, l.expired(ep.rules), took, l.end, 0)
	}
}

// expired is the result of a lease that has run out.
func (l *lease) expired(r *rules) ProbeOutcome {
	if !l.answered {
		return ProbeExpired
	}
	return r.probeSuccess(l.took)
}

// probeSuccess is the result of a success that was answered after took.
func (r *rules) probeSuccess(took time.Duration) ProbeOutcome {
	if limit := r.cfg.ProbeLatency; limit > 0 && took > limit {
		return ProbeSlow
	}
	return ProbeSucceeded
}

// finish ends lease i with a result dated at date; b.mu is held.
func (b *Breaker) finish(ep *episode, i int, how ProbeOutcome, took time.Duration, date mono.Instant, asked time.Duration) {
	o, to, held := ep.out, HalfOpen, ep.out.leases[i].lock
	o.drop(i)
	b.extra().acts(ep.rules).countProbe(how)
	b.queueProbe(ep, how, took)
	if how != ProbeNeutral {
		o.count(how)
		to = ep.rules.decide(o.good, o.bad)
	}
	shared := ep.rules.fleet != nil
	switch {
	case to == Open:
		next := b.open(ep, how.reason(), o.nth+1, o.spread, date, asked)
		if shared {
			b.shareReopening(next, ep, how, held)
		}
	case shared:
		b.shareEnd(ep, how, to, held, date)
	case to == Closed:
		b.close(ep, Closed, ReasonRecovered, date)
	}
}

// count counts a probe that is not neutral.
func (o *outage) count(how ProbeOutcome) {
	if how == ProbeSucceeded {
		o.good++
	} else {
		o.bad++
	}
}

// decide returns where these numbers of probe results lead: Closed, Open, or HalfOpen if
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

// lease finds a probe in flight, once the leases that have run out are found.
// It returns the half-open episode and the lease's index, or -1 if the lease
// is over; b.mu is held.
func (b *Breaker) lease(ep *episode, id uint32, now mono.Instant) (*episode, int) {
	for range 2 { // what settle finds may end the episode
		present := b.now.Load()
		if present.generation() != ep.generation() {
			return present, -1
		}
		b.settle(present, now)
	}
	present := b.now.Load()
	return present, present.out.find(id)
}

// probeAnswered notes that a probe has been answered.
func (b *Breaker) probeAnswered(t *Ticket, took time.Duration, now mono.Instant) {
	b.mu.Lock()
	defer b.unlock()
	if ep, i := b.lease(t.ep, t.lease(), now); i >= 0 {
		ep.out.leases[i].answered = true
		ep.out.leases[i].took = took
	}
}

// LastsAt is for the kit's own packages: it gives a probe another lease than
// ProbeTimeout, counted from now, for a caller that knows better how long an answer may
// take. If the attempt is no probe, or its lease is over, it does nothing.
func (t *Ticket) LastsAt(length time.Duration, now mono.Instant) {
	if t.b == nil || t.lease() == 0 {
		return
	}
	t.b.mu.Lock()
	defer t.b.unlock()
	if ep, i := t.b.lease(t.ep, t.lease(), now); i >= 0 {
		l := &ep.out.leases[i]
		l.length, l.end = now.Sub(t.at)+length, now.Add(length)
	}
}

// endProbe books the end of a probe.
func (b *Breaker) endProbe(t *Ticket, v Verdict, asked time.Duration, now mono.Instant) {
	b.mu.Lock()
	defer b.unlock()
	ep, i := b.lease(t.ep, t.lease(), now)
	if i < 0 {
		return
	}
	took := time.Duration(t.at.Pack())
	if t.mark.bits&answered == 0 {
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
	defer b.unlock()
	if present := b.now.Load(); present.generation() == ep.generation() {
		if i := present.out.find(id); i >= 0 {
			held := present.out.leases[i].lock
			present.out.drop(i)
			if present.rules.fleet != nil {
				b.shareEnd(present, ProbeNeutral, HalfOpen, held, mono.Now())
			}
		}
	}
}

// drop ends lease i.
func (o *outage) drop(i int) { o.leases = append(o.leases[:i], o.leases[i+1:]...) }
