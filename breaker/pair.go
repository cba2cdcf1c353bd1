package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Pair is the admission of one attempt by two breakers: that of its resource or
// method, and that of its target. It is used as a [Ticket] is, has one owner at a time
// and must not be copied; the zero Pair does nothing.
type Pair struct {
	first, second Ticket
}

// AllowBoth asks first and then second. If second refuses, nothing of the
// admission by first remains. If both refuse, the error is that of the one that
// refuses for longer. A nil second is none: first is asked alone.
func AllowBoth(first, second *Breaker) (Pair, error) { return allowBoth(first, second, mono.Now()) }

func allowBoth(first, second *Breaker, now mono.Instant) (p Pair, err error) {
	err = p.AllowAt(first, second, now)
	return // by name: a Pair is not to be copied
}

// AllowAt is for the kit's own packages: [AllowBoth] for a Pair that has its place
// already, so that an attempt's record need not be copied to. p is the zero Pair, and
// stays so if it is refused.
func (p *Pair) AllowAt(first, second *Breaker, now mono.Instant) (err error) {
	if ep := first.now.Load(); second == nil && ep.plain() {
		p.first.b, p.first.ep, p.first.at = first, ep, now
		return nil
	}
	if p.first, err = first.allow(now, false); second == nil {
		return err
	}
	return p.allowSecondAt(err, second, now)
}

// allowSecondAt asks the second breaker, once the first has said refusal or nil.
func (p *Pair) allowSecondAt(refusal error, second *Breaker, now mono.Instant) (err error) {
	if refusal != nil {
		return longer(refusal, second.RefusalAt(now), now)
	}
	admitted := false
	defer func() {
		if !admitted {
			p.first.cancel() // a hook may panic in the second
		}
	}()
	if p.second, err = second.AllowAt(now); err != nil {
		return err
	}
	admitted = true
	return nil
}

// ProbeAt is for the kit's own packages: [Pair.AllowAt] for a caller that has nowhere
// else to go, where either breaker admits as [Breaker.Probe] does.
func (p *Pair) ProbeAt(first, second *Breaker, now mono.Instant) (err error) {
	if p.first, err = first.allow(now, true); err != nil || second == nil {
		return err
	}
	admitted := false
	defer func() {
		if !admitted {
			p.first.cancel()
		}
	}()
	if p.second, err = second.allow(now, true); err != nil {
		return err
	}
	admitted = true
	return nil
}

// Move is for the kit's own packages: it makes to, the zero Pair, what p is, and p the
// zero Pair.
func (p *Pair) Move(to *Pair) {
	p.first.move(&to.first)
	p.second.move(&to.second)
}

// RefusalOfBothAt is for the kit's own packages: it returns nil if a call at now would
// be admitted by both, or else the refusal that it would get: a forced one, or the one
// that lasts longer. It takes no slot and changes nothing. A nil second is none.
func RefusalOfBothAt(first, second *Breaker, now mono.Instant) *OpenError {
	a, _ := first.RefusalAt(now).(*OpenError)
	if second == nil {
		return a
	}
	b, _ := second.RefusalAt(now).(*OpenError)
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return longer(a, b, now).(*OpenError)
}

// longer returns the refusal that lasts longer; the second may be nil. A forced
// one lasts longest.
func longer(first, second error, now mono.Instant) error {
	a, _ := first.(*OpenError)
	b, _ := second.(*OpenError)
	if b == nil || a.Forced() || !b.Forced() && a.RetryAfterAt(now) >= b.RetryAfterAt(now) {
		return first
	}
	return second
}

// Answered is [Ticket.Answered] for both.
func (p *Pair) Answered() {
	p.first.Answered()
	p.second.Answered()
}

// AnsweredAt is for the kit's own packages: Answered for a caller that has read the
// clock.
func (p *Pair) AnsweredAt(now mono.Instant) {
	p.first.answeredAt(now)
	p.second.answeredAt(now)
}

// Unwatched is [Ticket.Unwatched] for both.
func (p *Pair) Unwatched() {
	p.first.Unwatched()
	p.second.Unwatched()
}

// Queued is for the kit's own packages: it says that the attempt waits on this side of
// the wire, for a permit. It is neither silent nor slow until BeginAt.
func (p *Pair) Queued() {
	p.first.queue()
	p.second.queue()
}

// BeginAt is for the kit's own packages: it says that the attempt is made only now, and
// the dependency's time counts from here. A probe's lease still counts from its
// admission.
func (p *Pair) BeginAt(now mono.Instant) {
	p.first.beginAt(now)
	p.second.beginAt(now)
}

// Probe reports whether the attempt is a probe of either.
func (p *Pair) Probe() bool {
	return (p.first.mark.bits|p.second.mark.bits)>>leaseShift != 0 && p.ProbeLimit() > 0
}

// ProbeLimit returns the shorter of the leases, counted from the admission; 0 if there is
// none.
func (p *Pair) ProbeLimit() time.Duration {
	a, b := p.first.ProbeLimit(), p.second.ProbeLimit()
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// BeganAt is for the kit's own packages: it returns when the attempt was admitted, for a
// caller who handed in now. It is later if a probe has waited for the lock of a [Fleet].
func (p *Pair) BeganAt(now mono.Instant) mono.Instant {
	for _, t := range []*Ticket{&p.first, &p.second} {
		if t.lease() != 0 {
			now = mono.Later(now, t.at)
		}
	}
	return now
}

// Done books the end of the attempt on both, as [Ticket.Done] does.
func (p *Pair) Done(o Outcome) { p.DoneAt(o, mono.Now()) }

// DoneAt is for the kit's own packages: Done for a caller that has read the clock.
func (p *Pair) DoneAt(o Outcome, now mono.Instant) {
	if p.second.b == nil {
		p.first.DoneAt(o, now)
		return
	}
	p.bothDoneAt(o, now)
}

func (p *Pair) bothDoneAt(o Outcome, now mono.Instant) {
	defer p.second.DoneAt(o, now) // also if a hook of the first panics
	p.first.DoneAt(o, now)
}
