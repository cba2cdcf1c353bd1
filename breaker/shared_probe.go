package breaker

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// seek admits a call as a probe if the fleet lets it. ep is open with its
// cooldown over, or half-open, or the probe is forced.
func (b *Breaker) seek(ep *episode, now mono.Instant, forced bool) (Ticket, error) {
	f, m := ep.rules.fleet, b.extra()
	b.mu.Lock()
	if b.now.Load() == ep {
		b.settle(ep, now)
	}
	switch {
	case b.now.Load() != ep:
		b.unlock()
		return b.allow(now, forced)
	case m.asking != "" || ep.state() == HalfOpen && (len(ep.out.leases) > 0 || !ep.out.share.free(now)):
		b.unlock()
		return b.refuse(ep, ep.out.err.cause)
	}
	revision, era := m.revision, m.era
	claim := b.claim(ep, now)
	m.asking = claim.Token
	b.unlockOr(func() { b.asked(m) })

	rec, err := f.claim(b.key, claim)
	now = mono.Later(now, mono.Now()) // the wait is not the dependency's

	b.mu.Lock()
	m.asking = ""
	if err == nil && era == f.era.Load() && rec.Revision < revision {
		f.lostData()
	}
	granted := err == nil && rec.Holder == claim.Token
	switch {
	case b.now.Load() != ep:
		if granted {
			b.unlockProbe(claim, lock{claim.Token, true, now.Add(claim.Lease)})
		}
		b.unlock()
		return b.allow(now, false)
	case errors.Is(err, errBusy): // the lock may be somebody's; the next call asks
		b.unlock()
		return b.refuse(ep, ep.out.err.cause)
	case err == nil && !granted:
		f.stats.held.Add(1)
		b.adopt(&rec, now)
		switch ep, end := b.now.Load(), now.Add(rec.Lease); {
		case ep.state() == HalfOpen:
			ep.out.share.held, ep.out.share.hold = true, end
		case ep.state() == Open && rec.Lease > 0 && end.After(ep.out.until):
			b.last(ep, ep.out.nth, ep.out.lasts, end)
		}
		b.unlock()
		return b.afterHeld(now)
	case granted:
		f.stats.granted.Add(1)
		m.take(f, &rec)
	default:
		f.stats.unasked.Add(1)
	}
	next, held := ep, lock{claim.Token, granted, now.Add(claim.Lease)}
	var id uint32
	if ep.state() == Open {
		next, id = b.halfOpenLocked(ep, now, held)
		next.out.share = share{gen: ep.out.share.gen, known: ep.out.share.known, era: ep.out.share.era, alone: ep.out.share.alone}
	} else {
		id = ep.out.lend(ep.rules, now, held)
	}
	if granted {
		next.out.share.gen, next.out.share.held = rec.Generation, false
		if rec.Open {
			next.out.good, next.out.bad, next.out.share.alone = rec.Good, rec.Bad, false
		}
	}
	b.unlockKeeping(next, id)
	return Ticket{b: b, ep: next, at: now, mark: probeMark(id)}, nil
}

// asked ends the asking of a call that does not ask after all.
func (b *Breaker) asked(m *more) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.asking = ""
}

// afterHeld admits or refuses a call that did not get the lock.
func (b *Breaker) afterHeld(now mono.Instant) (Ticket, error) {
	switch ep := b.present(); ep.state() {
	case Open, HalfOpen, ForcedOpen:
		return b.refuse(ep, ep.out.err.cause)
	}
	return b.allow(now, false) // another worker has closed
}

// claim is what a probe of ep asks the store for.
func (b *Breaker) claim(ep *episode, now mono.Instant) Claim {
	f := ep.rules.fleet
	return Claim{
		Opening: b.opening(ep, now), Shared: !ep.out.share.alone, Token: f.token(),
		Generation: ep.out.share.gen, Lease: ep.rules.cfg.ProbeTimeout + 2*f.set.Timeout,
	}
}

// claim asks the store for the lock of a probe.
func (f *Fleet) claim(key string, c Claim) (Record, error) {
	if f.down.Load() {
		return Record{}, errDown
	}
	rec, err := ask(f, mostClaims, func(ctx context.Context) (Record, error) { return f.set.Store.Probe(ctx, f.set.Space, key, c) })
	if errors.Is(err, errBusy) {
		return rec, err
	}
	if err != nil {
		f.suspect(err)
		return rec, err
	}
	f.remember(&rec, mono.Now())
	return rec, nil
}

// settlement is the end of a probe of ep.
func (b *Breaker) settlement(ep *episode, how ProbeOutcome, to State, held lock) Settlement {
	c := b.claim(ep, mono.Now())
	c.Token = held.token
	return Settlement{Claim: c, Locked: held.granted, Outcome: how, To: to}
}

// settle tells the store of a probe's end; again, if it does not answer, for as
// long as the lock is held.
func (f *Fleet) settle(key string, s Settlement, held lock, done func(*Record, error)) {
	posted, again := mono.Now(), false
	f.post(errand{
		prepare: func(now mono.Instant) command {
			if again && !now.Before(held.until) {
				return nil
			}
			again = true
			s := s
			s.Left = max(s.Left-now.Sub(posted), 0)
			return func(ctx context.Context) (Record, error) { return f.set.Store.Settle(ctx, f.set.Space, key, s) }
		},
		done:   done,
		urgent: true,
		must:   s.To == Closed,
		kept:   s.Locked, // without the lock it would count twice, should it have been heard
	})
}

// shareReopening tells the fleet that a probe of old has failed, and b is open
// by ep; b.mu is held.
func (b *Breaker) shareReopening(ep, old *episode, how ProbeOutcome, held lock) {
	s := &ep.out.share
	s.gen, s.known, s.era, s.alone, s.ahead = old.out.share.gen, old.out.share.known, old.out.share.era, old.out.share.alone, true
	f := ep.rules.fleet
	if !s.alone {
		f.holds(b.key, b)
	}
	f.settle(b.key, b.settlement(ep, how, Open, held), held, b.heard)
}

// shareEnd tells the fleet that a probe has ended, which leaves ep half-open, at
// least until the store has answered; b.mu is held.
func (b *Breaker) shareEnd(ep *episode, how ProbeOutcome, to State, held lock, date mono.Instant) {
	f, first, s := ep.rules.fleet, true, &ep.out.share
	s.settling, s.closes, s.patience = true, to == Closed, mono.Now().Add(f.set.Timeout)
	f.settle(b.key, b.settlement(ep, how, to, held), held, func(rec *Record, err error) {
		b.mu.Lock()
		defer b.unlock()
		now, present := mono.Now(), b.now.Load()
		late := !first || present.generation() != ep.generation()
		first = false
		switch {
		case late && err != nil:
			return
		case late && to == Closed && !rec.live():
			// It has closed already, by its own knowledge. If it has opened since, that
			// came after, and the store may have taken it for the same outage.
			b.extra().take(f, rec)
			if present.tellable(now) {
				s := &present.out.share
				s.gen, s.known, s.era = rec.Generation, rec.Revision, f.era.Load()
				b.shareOpening(present)
			}
			return
		case late:
			b.adopt(rec, now)
			return
		}
		present.out.share.settling = false
		recovered := to == Closed && (err != nil || !rec.live())
		if err == nil && !recovered {
			b.adopt(rec, now)
		}
		switch {
		case recovered:
			if err == nil {
				b.extra().take(f, rec)
			}
			b.close(present, Closed, ReasonRecovered, mono.Later(date, now))
		case to == Closed && b.now.Load() == present:
			// The lock was lost, and with it the right to say so.
			b.openShared(present, rec, now)
		}
	})
}

// unlockProbes gives back the locks of probes that ep ends with; b.mu is held.
func (b *Breaker) unlockProbes(ep *episode) {
	for i := range ep.out.leases {
		b.unlockProbe(b.claim(ep, mono.Now()), ep.out.leases[i].lock)
	}
}

// unlockProbe gives back a lock that nobody will settle; b.mu is held.
func (b *Breaker) unlockProbe(c Claim, held lock) {
	c.Token = held.token
	f := b.now.Load().rules.home
	f.settle(b.key, Settlement{Claim: c, Locked: held.granted, Outcome: ProbeNeutral, To: HalfOpen}, held, func(*Record, error) {})
}
