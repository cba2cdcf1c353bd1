package breaker

import "github.com/holdfast-go/holdfast/internal/mono"

// Update puts c in force and keeps the state: its number, the end of a cooldown
// that runs, probes in flight with the limits they have, and the results in the
// window, unless the window's kind or size is another or slow calls are newly
// looked at or no longer; then it starts empty. Attempts in flight end under the
// Config they began with. If c has faults it returns an error that names them,
// and the old Config stays.
func (b *Breaker) Update(c Config) error {
	if err := c.faults("drop the breaker instead").Err("breaker"); err != nil {
		return err
	}
	old := b.now.Load().rules
	r := old.home.compile(c)
	r.draw = old.draw
	b.update(r, mono.Now())
	return nil
}

// Update is [Breaker.Update] for all breakers of the group, present and to come. If c has
// faults it returns an error that names them, and nothing is changed.
func (g *Group) Update(c Config) error {
	if err := c.faults("drop the group instead").Err("breaker"); err != nil {
		return err
	}
	g.Apply(c)()
	return nil
}

// Apply is for the kit's own packages: Update for whoever holds a lock. It calls no
// hook, but returns a function that tells them what was found out, such as the end of a
// lease, and is to be called once the lock is released. c must have no faults.
func (g *Group) Apply(c Config) (tell func()) {
	r := g.fleet.compile(c)
	g.update.Lock() // of two at once, one is in force in the end, and everywhere
	defer g.update.Unlock()
	g.rules.Store(r) // a breaker made from here on has it
	var touched []*Breaker
	for key, b := range g.All() {
		b.mu.Lock()
		if b.now.Load().state() != retired { // its heir has r already
			b.turnTo(g.rulesOf(key, r), mono.Now())
			touched = append(touched, b)
		}
		b.mu.Unlock()
	}
	return func() { tellAll(touched) }
}

// Part is for the kit's own packages: it returns a group that goes on with those
// breakers of g whose keys keep names. They are in both then; g is for calls that still
// know it, and drops none of them any more. The totals of the others count as those of
// evicted ones.
func (g *Group) Part(keep func(key string) bool) *Group {
	part := emptyGroup(g.rules.Load(), g.max, g.fleet)
	g.left.Store(true)
	part.keys.Adopt(g.keys, func(key string, _ *Breaker) bool { return keep(key) })
	part.evicted.absorb(g.Evicted())
	part.before = g.Evictions()
	kept := map[*Breaker]bool{}
	for _, b := range part.All() {
		kept[b] = true
	}
	for _, b := range g.All() {
		if !kept[b] {
			part.evicted.absorb(b.Counts().Totals)
			part.before++
		}
	}
	return part
}

func (b *Breaker) update(r *rules, now mono.Instant) {
	b.command(now, func(b *Breaker, _ *episode) { b.turnTo(r, now) })
}

// turnTo goes on under r; b.mu is held and b is not retired.
func (b *Breaker) turnTo(r *rules, now mono.Instant) {
	b.settle(b.now.Load(), now)
	ep := b.now.Load()
	ep.turn(now)
	if ep.rules == r {
		return
	}
	if ep.rules.fleet != nil && r.fleet == nil && ep.state() == HalfOpen {
		b.unlockProbes(ep) // it is nobody else's affair any more how they end
	}
	var next *episode
	if s := ep.state(); s == Closed || s == Disabled {
		next = ep.resume(r, now)
	} else {
		next = newStop(b, r, s, ep.out.err.cause)
		next.out.resume(ep.out)
	}
	next.follow(ep, 0)
	b.now.Store(next)
	if ep.rules.fleet == nil {
		b.rejoinLocked(now)
	}
}

// resume returns a closed or disabled episode under r that goes on where ep
// stops; b.mu is held.
func (ep *episode) resume(r *rules, now mono.Instant) *episode {
	next := &episode{}
	newClosed(next, r, ep.state(), now)
	sum := ep.sum.Or(dead) &^ dead
	if ep.rules.sameWindow(r) {
		next.spans, next.last = ep.spans, ep.last
		next.flags.Or(ep.flags.Load() & exactFlag)
		next.sum.Store(sum)
		if next.judge(sum) != 0 {
			next.flags.Or(judgeFlag)
		}
	} else {
		next.sum.Store(sum & rowMask)
	}
	if r.cfg.Stall.After == ep.rules.cfg.Stall.After {
		next.stall = ep.stall
	}
	if ep.flags.Load()&rampFlag != 0 && r.cfg.RampUp > 0 {
		next.out = ep.out
		next.flags.Or(rampFlag)
	}
	return next
}

// resume makes o go on where old stops; b.mu is held.
func (o *outage) resume(old *outage) {
	o.err.note, o.err.why, o.since = old.err.note, old.err.why, old.since
	o.nth, o.until, o.lasts, o.spread = old.nth, old.until, old.lasts, old.spread
	o.leases, o.lastID, o.good, o.bad = old.leases, old.lastID, old.good, old.bad
	o.share = old.share
}

// sameWindow reports whether the window of one can go on under the other.
func (r *rules) sameWindow(s *rules) bool {
	return r.kind == s.kind && r.calls == s.calls && r.buckets == s.buckets && r.bucketTime == s.bucketTime &&
		(r.cfg.SlowCall > 0) == (s.cfg.SlowCall > 0)
}
