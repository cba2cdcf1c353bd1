package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Ticket is one admission. It has one owner at a time and must not be copied;
// its owner calls Done once. The zero Ticket does nothing.
type Ticket struct {
	_     noCopy
	b     *Breaker // nil once done
	ep    *episode
	start mono.Instant
	took  time.Duration // to the answer, if flags has answered
	id    uint32        // of the probe; 0 if it is none
	flags uint8
}

const (
	watched  = 1 << iota // counted in the stall ring as unanswered
	waiting              // counted in the stall ring as answered but not ended
	answered             // Answered was called
)

// noCopy makes go vet's copylocks check complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Answered tells that the dependency has begun to answer: the headers or the
// first message are there. From then on the attempt is no longer silent, it is
// slow or not by the time up to here, and a probe's lease can only end as a
// success. Calling it is optional where the answer comes at once.
func (t *Ticket) Answered() {
	if t.b == nil || t.id == 0 && !t.ep.timed {
		return
	}
	t.AnsweredAt(mono.Now())
}

// AnsweredAt is Answered for a caller that has read the clock.
func (t *Ticket) AnsweredAt(now mono.Instant) {
	if t.b == nil || t.flags&answered != 0 {
		return
	}
	t.flags |= answered
	t.took = now.Sub(t.start)
	if t.id != 0 {
		t.b.probeAnswered(t.ep, t.id, t.took, now)
		return
	}
	if s := t.ep.stall; s != nil && t.flags&watched != 0 {
		slot := t.ep.rules.slotAt(now)
		s.end(t.ep.rules.slotAt(t.start))
		s.answered.Add(1)
		s.well(slot)
		t.flags = t.flags&^watched | waiting
	}
}

// Unwatched takes the attempt out of the stall rule without an answer: it may
// be silent for as long as it likes, such as a stream without a limit for its
// first message.
func (t *Ticket) Unwatched() {
	if t.b != nil && t.flags&watched != 0 {
		t.ep.stall.end(t.ep.rules.slotAt(t.start))
		t.flags &^= watched
	}
}

// Probe reports whether the attempt is a probe: it must not be repeated, and
// its limit is ProbeLimit. In a shadow it is false, since nothing may be done
// differently there.
func (t *Ticket) Probe() bool { return t.ProbeLimit() > 0 }

// ProbeLimit returns the length of a probe's lease, counted from its admission.
// It is 0 if the attempt is no probe.
func (t *Ticket) ProbeLimit() time.Duration {
	if t.id == 0 || t.ep.rules.cfg.Shadow {
		return 0
	}
	return t.ep.rules.cfg.ProbeTimeout
}

// Done books the end of the attempt. A second Done does nothing, and neither
// does one that comes after the breaker has changed its state or the probe's
// lease has run out. It allocates nothing unless it changes the state.
func (t *Ticket) Done(o Outcome) {
	b, ep := t.b, t.ep
	if b == nil {
		return
	}
	if o.Verdict == Success && !ep.timed && t.id == 0 && ep.spans == nil {
		t.b = nil
		b.book(ep, false, false, 0, unread)
		return
	}
	t.DoneAt(o, mono.Now())
}

// DoneAt is Done for a caller that has read the clock.
func (t *Ticket) DoneAt(o Outcome, now mono.Instant) {
	b, ep := t.b, t.ep
	if b == nil {
		return
	}
	t.b = nil
	if t.id != 0 {
		b.endProbe(t, o, now)
		return
	}
	verdict := o.Verdict
	if verdict == Throttled {
		verdict = Neutral
		if ep.rules.cfg.CountThrottled {
			verdict = Failure
		}
	}
	if ep.stall != nil {
		t.leaveRing()
		if verdict == Success {
			ep.stall.well(ep.rules.slotAt(now))
		}
	}
	if verdict == Neutral {
		b.extra().neutral.Add(1)
		b.findStall(ep, now)
		return
	}
	slow := false
	if limit := ep.rules.cfg.SlowCall; limit > 0 {
		took := t.took
		if t.flags&answered == 0 {
			took = now.Sub(t.start)
		}
		slow = took > limit
	}
	b.book(ep, verdict != Success, slow, o.RetryAfter, now)
	if verdict != Success {
		b.findStall(ep, now)
	}
}

// leaveRing takes the attempt out of the stall ring.
func (t *Ticket) leaveRing() {
	switch {
	case t.flags&watched != 0:
		t.ep.stall.end(t.ep.rules.slotAt(t.start))
	case t.flags&waiting != 0:
		t.ep.stall.answered.Add(-1)
	}
}

// cancel ends an attempt that was never made: nothing of it remains.
func (t *Ticket) cancel() {
	if t.b == nil {
		return
	}
	if t.id != 0 {
		t.b.dropProbe(t.ep, t.id)
	} else if t.ep.stall != nil {
		t.leaveRing()
	}
	t.b = nil
}
