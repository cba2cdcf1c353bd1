package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Ticket is one admission. It has one owner at a time and must not be copied;
// its owner calls Done once. The zero Ticket does nothing.
type Ticket struct {
	b  *Breaker // nil once done
	ep *episode

	// at is the time of the admission; once answered, how long that took, packed.
	at mono.Instant

	// A ticket of four words is handed over in registers: 15 ns less for an
	// attempt than with six.
	mark mark
}

// mark holds a ticket's flags, and above them the number of its lease if it is
// a probe. Its methods make go vet's copylocks check complain about copies of
// tickets.
type mark struct{ bits uint64 }

const (
	watched  = 1 << iota // counted in the stall ring as unanswered
	waiting              // counted in the stall ring as answered but not ended
	answered             // Answered was called
	queued               // not yet sent, and counted again once it is

	leaseShift = iota
)

func (*mark) Lock()   {}
func (*mark) Unlock() {}

// lease returns the number of a probe's lease, or 0.
func (t *Ticket) lease() uint32 { return uint32(t.mark.bits >> leaseShift) }

func probeMark(lease uint32) mark { return mark{uint64(lease) << leaseShift} }

// move makes to, the zero Ticket, what t is, and t the zero Ticket.
func (t *Ticket) move(to *Ticket) {
	to.b, to.ep, to.at, to.mark.bits = t.b, t.ep, t.at, t.mark.bits
	t.b, t.ep, t.at, t.mark.bits = nil, nil, mono.Instant{}, 0
}

// Answered tells that the dependency has begun to answer: the headers or the
// first message are there. From then on the attempt is no longer silent, it is
// slow or not by the time up to here, and a probe's lease can only end as a
// success. Calling it is optional where the answer comes at once.
func (t *Ticket) Answered() {
	if t.b != nil && (t.ep.rules.timed || t.lease() != 0) {
		t.answeredAt(mono.Now())
	}
}

// answeredAt is Answered at now.
func (t *Ticket) answeredAt(now mono.Instant) {
	if t.b == nil || t.mark.bits&answered != 0 {
		return
	}
	began := t.at
	t.at = mono.Unpack(int64(now.Sub(began)))
	t.mark.bits |= answered
	if t.lease() != 0 {
		t.b.probeAnswered(t, now.Sub(began), now)
		return
	}
	if t.mark.bits&watched != 0 {
		s, r := t.ep.stall, t.ep.rules
		s.end(r.slotAt(began))
		s.answered.Add(1)
		s.well(r.slotAt(now))
		t.mark.bits = t.mark.bits&^watched | waiting
	}
}

// Unwatched takes the attempt out of the stall rule without an answer: it may
// be silent for as long as it likes, such as a stream without a limit for its
// first message.
func (t *Ticket) Unwatched() {
	if t.b != nil && t.mark.bits&watched != 0 {
		t.ep.stall.end(t.ep.rules.slotAt(t.at))
		t.mark.bits &^= watched
	}
}

// queue says that the attempt waits on this side of the wire: it is neither silent nor
// slow until beginAt.
func (t *Ticket) queue() {
	if t.b != nil && t.mark.bits&watched != 0 {
		t.Unwatched()
		t.mark.bits |= queued
	}
}

// beginAt says that the attempt is made only now: the dependency's time counts
// from here. A probe's lease still counts from its admission.
func (t *Ticket) beginAt(now mono.Instant) {
	if t.b == nil || t.mark.bits&answered != 0 {
		return
	}
	t.at = now
	if t.mark.bits&queued != 0 {
		t.ep.stall.begin(t.ep.rules.slotAt(now))
		t.mark.bits = t.mark.bits&^queued | watched
	}
}

// Probe reports whether the attempt is a probe: it must not be repeated, and
// its limit is ProbeLimit. In a shadow it is false, since nothing may be done
// differently there.
func (t *Ticket) Probe() bool { return t.ProbeLimit() > 0 }

// ProbeLimit returns the length of a probe's lease, counted from its admission.
// It is 0 if the attempt is no probe.
func (t *Ticket) ProbeLimit() time.Duration {
	if t.lease() == 0 || t.ep.rules.cfg.Shadow {
		return 0
	}
	return t.ep.rules.cfg.ProbeTimeout
}

// Done books the end of the attempt. A second Done does nothing, and neither
// does one that comes after the breaker has changed its state or the probe's
// lease has run out. It allocates nothing unless it changes the state.
func (t *Ticket) Done(o Outcome) { t.DoneAt(o, unread()) }

// DoneAt is for the kit's own packages: Done for a caller that has read the clock.
func (t *Ticket) DoneAt(o Outcome, now mono.Instant) {
	// A success that takes one step is booked here: a further call would make
	// BenchmarkClosed/consecutive a third slower, done twice as slow.
	if o.Verdict == Success && t.b != nil {
		ep := t.ep
		v, booked := ep.sum.Load(), false
		switch flags := ep.flags.Load() & (booksFlag | timedFlag | judgeFlag); {
		case v&dead != 0 || flags&(timedFlag|judgeFlag) != 0:
		case flags == 0: // one success for another
			booked = v&rowMask == 0 || ep.sum.CompareAndSwap(v, v&^rowMask)
		case ep.spans != nil:
			now = at(now)
			booked = ep.rules.spanAsUsual(v) && !ep.spans.over(now) && ep.sum.CompareAndSwap(v, v+ep.rules.span.total)
		default:
			booked = ep.rules.callAsUsual(v) && ep.sum.CompareAndSwap(v, v&^rowMask+callSeen)
		}
		if booked {
			t.b = nil
			return
		}
	}
	t.done(o.Verdict, o.RetryAfter, now)
}

func (t *Ticket) done(v Verdict, asked time.Duration, now mono.Instant) {
	b, ep := t.b, t.ep
	if b == nil {
		return
	}
	t.b = nil
	r := ep.rules
	if t.lease() != 0 {
		b.endProbe(t, v, asked, at(now))
		return
	}
	if v == Throttled {
		v = Neutral
		if r.cfg.CountThrottled {
			v = Failure
		}
	}
	slow := false
	if r.timed {
		now = at(now)
		slow = t.close(v, now)
	}
	if v == Neutral {
		b.extra().neutral.Add(1)
	} else if end := (result{v != Success, slow, asked}); !b.book(ep, end, now) {
		b.bookLate(ep, end, now)
	}
	if v != Success && ep.stall != nil {
		b.findStall(ep, now)
	}
}

// close does at the end of an attempt what is about its time: it takes the
// attempt out of the stall ring and reports whether it was slow.
func (t *Ticket) close(v Verdict, now mono.Instant) (slow bool) {
	took := time.Duration(t.at.Pack())
	if t.mark.bits&answered == 0 {
		took = now.Sub(t.at)
	}
	if t.ep.stall != nil {
		t.leaveRing()
		if v == Success {
			t.ep.stall.well(t.ep.rules.slotAt(now))
		}
	}
	limit := t.ep.rules.cfg.SlowCall
	return limit > 0 && took > limit
}

// leaveRing takes the attempt out of the stall ring.
func (t *Ticket) leaveRing() {
	switch {
	case t.mark.bits&watched != 0:
		t.ep.stall.end(t.ep.rules.slotAt(t.at))
	case t.mark.bits&waiting != 0:
		t.ep.stall.answered.Add(-1)
	}
}

// cancel ends an attempt that was never made: nothing of it remains.
func (t *Ticket) cancel() {
	if t.b == nil {
		return
	}
	if id := t.lease(); id != 0 {
		t.b.dropProbe(t.ep, id)
	} else if t.ep.stall != nil {
		t.leaveRing()
	}
	t.b = nil
}
