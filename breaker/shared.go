package breaker

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// standing is what a breaker knows of its record in the store; guarded by
// Breaker.mu.
type standing struct {
	era        uint32 // of the fleet's, in which revision means something
	telling    bool   // the store is to be told of the opening
	asking     string // the token with which a call asks for the lock of a probe; "" if none does
	revision   uint64 // of the record that was taken over last
	generation uint64 // of the same: what it said was done, or is known better here
}

// share is what a fleet has to do with an episode that refuses; guarded by
// Breaker.mu where it changes.
type share struct {
	gen   uint64 // generation of the record that the opening rests on
	known uint64 // revision that was known when it opened
	era   uint32 // of the fleet's, in which known means something
	alone bool   // the opening is this worker's own affair
	ahead bool   // it follows a failed probe of which the store does not know

	// Half-open: the store is being told of a probe's end, to which it may say
	// that the circuit is closed; and if it should close, it does so by itself at
	// patience. If held, another worker has the lock until hold.
	settling, closes bool
	patience         mono.Instant
	held             bool
	hold             mono.Instant

	forces forces
}

// free reports whether a call may ask for the lock.
func (s *share) free(now mono.Instant) bool { return !s.settling && (!s.held || !now.Before(s.hold)) }

// waitedOut reports whether the store has not said in time that the circuit is
// closed, which the probes have shown.
func (s *share) waitedOut(now mono.Instant) bool {
	return s.settling && s.closes && !now.Before(s.patience)
}

// lock is the fleet's for one probe.
type lock struct {
	token   string
	granted bool         // else the store was silent
	until   mono.Instant // when it ends by itself, if it was granted
}

// keep is how long the record of an opening is kept: until all who may have
// something to say about it have said it.
func (r *rules) keep(left time.Duration) time.Duration {
	c := &r.cfg
	const most = 10 * 365 * 24 * time.Hour
	all := float64(left) + float64(c.MaxCooldown) + float64(c.Window.Span) + 2*float64(c.ProbeTimeout) + float64(time.Minute)
	return time.Duration(min(all, float64(most)))
}

// opening tells the store of ep. What is half-open has no cooldown left.
func (b *Breaker) opening(ep *episode, now mono.Instant) Opening {
	o, f := ep.out, ep.rules.fleet
	const most = 9 * 365 * 24 * time.Hour
	left := time.Duration(0)
	if ep.state() == Open {
		left = min(max(o.until.Sub(now), 0), most)
	}
	return Opening{
		Worker: f.set.Worker, Reason: o.err.why, Nth: max(o.nth, 1), Cooldown: min(o.lasts, most), Left: left,
		Quorum: ep.rules.cfg.Quorum, Known: o.share.known, Keep: ep.rules.keep(left),
	}
}

// tellable reports whether ep is an opening that is the store's affair, and not
// over.
func (ep *episode) tellable(now mono.Instant) bool {
	return ep.state() == Open && ep.rules.fleet != nil && !ep.out.share.alone && now.Before(ep.out.until)
}

// shareOpening tells the fleet of ep, by which b has just opened or is open
// still; b.mu is held. What is told is how b stands once it is its turn.
func (b *Breaker) shareOpening(ep *episode) {
	f, m := ep.rules.fleet, b.extra()
	if ep.out.share.known == 0 {
		b.knows(&ep.out.share, f)
	}
	f.holds(b.key, b)
	if m.telling {
		return
	}
	m.telling = true
	f.post(errand{prepare: b.prepareOpening, done: b.heard})
}

func (b *Breaker) prepareOpening(now mono.Instant) command {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.extra().telling = false
	ep := b.now.Load()
	if !ep.tellable(now) {
		return nil
	}
	f, opening := ep.rules.fleet, b.opening(ep, now)
	return func(ctx context.Context) (Record, error) { return f.set.Store.Open(ctx, f.set.Space, b.key, opening) }
}

// knows notes what is known of the fleet at an opening; b.mu is held.
func (b *Breaker) knows(s *share, f *Fleet) {
	m := b.extra()
	s.known, s.era = f.revision.Load(), f.era.Load()
	if m.era == s.era {
		s.known = max(s.known, m.revision)
	}
}

// knew reports whether the recovery that rec tells of is older than what b has
// seen since, and so no news to it; b.mu is held.
func (b *Breaker) knew(ep *episode, rec *Record) bool {
	f := ep.rules.fleet
	if ep.state() == Closed {
		return rec.Generation <= f.revision.Load()
	}
	s := &ep.out.share
	return s.era == f.era.Load() && rec.Generation <= s.known
}

// heard takes over the answer to what the store was told.
func (b *Breaker) heard(rec *Record, err error) {
	b.mu.Lock()
	defer b.unlock()
	if f := b.now.Load().rules.fleet; err == nil && f != nil {
		f.settled(b.key)
		b.adopt(rec, mono.Now())
	}
}

// take notes that a record has been taken over.
func (m *more) take(f *Fleet, rec *Record) {
	m.era, m.revision, m.generation = f.era.Load(), rec.Revision, rec.Generation
}

// rejoin takes over what the fleet knows of b's key already. The hooks are told
// on another goroutine: its caller may hold a lock.
func (b *Breaker) rejoin(now mono.Instant) {
	f := b.now.Load().rules.fleet
	if f == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rejoinLocked(now)
	if m := b.more.Load(); m != nil && len(m.events) > 0 {
		f.flush(b)
	}
}

func (b *Breaker) rejoinLocked(now mono.Instant) {
	if f := b.now.Load().rules.fleet; f != nil {
		if rec, ok := f.recall(b.key, now); ok {
			b.adopt(&rec, now)
		}
	}
}

// adopt brings b in line with its record in the store, as of now; b.mu is held.
// What is older than what b has heard before is nothing.
func (b *Breaker) adopt(rec *Record, now mono.Instant) {
	ep := b.now.Load()
	f := ep.rules.fleet
	if f == nil || ep.state() == retired || rec.Mark == (Mark{}) {
		return
	}
	m := b.extra()
	if m.era == f.era.Load() && rec.Revision < m.revision {
		return
	}
	b.settle(ep, now)
	ep = b.now.Load()
	if held := ep.forces(); rec.Forced || held.fleet != nil || held.here != nil {
		b.adoptForce(ep, held, rec, now)
		return
	}
	if ep.state() == Disabled {
		return // nothing moves it; Enable takes over what there is then
	}
	news := rec.Generation != m.generation && rec.Generation != 0 // with 0 it was never open
	m.take(f, rec)
	switch {
	case rec.Open && (news || ep.state() == Open):
		b.openShared(ep, rec, now)
	case !rec.Open && news && !b.knew(ep, rec):
		b.closeShared(ep, now)
	default:
		if !rec.Open && ep.idle() {
			ep.out.share.gen = rec.Generation // on that rests what this worker's own opening asks
		}
		if ep.state() == HalfOpen && rec.Holder == "" {
			ep.out.share.held = false
		}
	}
}

// idle reports whether ep is open, or half-open without a probe of which the
// store is to be told.
func (ep *episode) idle() bool {
	s := ep.state()
	return s == Open || s == HalfOpen && len(ep.out.leases) == 0 && !ep.out.share.settling
}

// adoptForce is adopt where a force plays a part.
func (b *Breaker) adoptForce(ep *episode, held forces, rec *Record, now mono.Instant) {
	m, f := b.extra(), ep.rules.fleet
	switch {
	case rec.Forced:
		m.take(f, rec)
		if held.fleet == nil || *held.fleet != rec.Note {
			held.fleet = &rec.Note
			b.force(ep, held, ReasonFleetForced, now)
		}
	case held.fleet == nil: // forced here: Release takes over what there is then
	case held.here != nil:
		m.take(f, rec)
		b.force(ep, forces{here: held.here}, ReasonFleetReleased, now)
	default:
		m.take(f, rec)
		lasts := rec.Cooldown
		if !rec.Open {
			lasts = ep.rules.cooldown(1, ep.rules.spread(), 0)
			rec.Left = lasts
		}
		b.openUntil(ep, ReasonFleetReleased, max(rec.Nth, 1), lasts, now, now.Add(rec.Left))
	}
}

// openShared makes b open as its record is; b.mu is held.
func (b *Breaker) openShared(ep *episode, rec *Record, now mono.Instant) {
	left := max(rec.Left, rec.Lease)
	if rec.Holder != "" && rec.Holder == b.extra().asking {
		left = rec.Left // the lock is b's: the answer to that is on its way
	}
	until := now.Add(left)
	if ep.state() != Open {
		next := b.openUntil(ep, ReasonShared, rec.Nth, rec.Cooldown, now, until)
		next.out.share.known = rec.Revision
		return
	}
	o := ep.out
	o.share.known, o.share.era = rec.Revision, ep.rules.fleet.era.Load()
	if o.share.alone || o.share.ahead && o.share.gen == rec.Generation {
		until = mono.Later(until, o.until)
	}
	o.share.ahead = o.share.ahead && o.share.gen == rec.Generation
	o.share.gen, o.share.alone = rec.Generation, false
	if d := until.Sub(o.until); d > -nearly && d < nearly || !until.After(now) && !o.until.After(now) {
		return
	}
	b.last(ep, rec.Nth, rec.Cooldown, until)
}

// last makes the open episode ep the nth in a row and have another end; b.mu is
// held.
func (b *Breaker) last(ep *episode, nth int, lasts time.Duration, until mono.Instant) {
	next := newStop(b, ep.rules, Open, CauseOpen)
	next.out.resume(ep.out)
	next.out.nth, next.out.lasts, next.out.until = nth, lasts, until
	next.follow(ep, 0)
	b.now.Store(next)
}

// nearly is a difference of times that is not worth a correction.
const nearly = 5 * time.Millisecond

// closeShared closes b since the fleet has recovered; b.mu is held. If b is
// closed already then the fleet has opened and closed in the meantime: the
// results before that count no more.
func (b *Breaker) closeShared(ep *episode, now mono.Instant) {
	if ep.state() == Closed {
		ep = b.openUntil(ep, ReasonShared, 1, 0, now, now)
	}
	b.close(ep, Closed, ReasonSharedRecovered, now)
}
