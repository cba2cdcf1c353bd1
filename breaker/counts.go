package breaker

import "github.com/holdfast-go/holdfast/internal/mono"

// Counts are the figures of a breaker.
type Counts struct {
	// Results, Failures and Slow are those in the window, without those that
	// have left it. They are 0 where there is no window, and in other states
	// than closed and disabled.
	Results, Failures, Slow int

	// Consecutive is the present row of failures, counted up to 2,047.
	Consecutive int

	// Unanswered is the number of attempts in flight that are not answered, if
	// the stall rule is set.
	Unanswered int

	// Probes is the number of probes in flight; ProbeSuccesses and
	// ProbeFailures are those counted in the present half-open state.
	Probes, ProbeSuccesses, ProbeFailures int

	// Totals grow for as long as the breaker lives.
	Totals Totals
}

// Totals are counters that never fall.
type Totals struct {
	// Opens counts the openings by a rule or a probe.
	Opens uint64

	// Neutral counts the neutral ends of attempts that were not probes.
	Neutral uint64

	// The ends of probes by outcome: ProbesFailed includes the slow ones.
	ProbesSucceeded, ProbesFailed, ProbesExpired, ProbesNeutral uint64

	// The refusals by cause; in a shadow the calls that would have been
	// refused.
	RefusedOpen, RefusedHalfOpen, RefusedForced, RefusedRamp uint64
}

// Plus returns the sum of t and u.
func (t Totals) Plus(u Totals) Totals {
	t.Opens += u.Opens
	t.Neutral += u.Neutral
	t.ProbesSucceeded += u.ProbesSucceeded
	t.ProbesFailed += u.ProbesFailed
	t.ProbesExpired += u.ProbesExpired
	t.ProbesNeutral += u.ProbesNeutral
	t.RefusedOpen += u.RefusedOpen
	t.RefusedHalfOpen += u.RefusedHalfOpen
	t.RefusedForced += u.RefusedForced
	t.RefusedRamp += u.RefusedRamp
	return t
}

// Counts returns the figures as of now. It changes nothing: what only a call
// would find, such as a lease that has run out, is not in them.
func (b *Breaker) Counts() Counts { return b.CountsAt(mono.Now()) }

// CountsAt is Counts for a caller that has read the clock.
func (b *Breaker) CountsAt(now mono.Instant) Counts {
	b.mu.Lock()
	ep := b.now.Load()
	if ep.state() == retired {
		b.mu.Unlock()
		return b.heir(now).CountsAt(now)
	}
	defer b.mu.Unlock()
	sum := ep.sum.Load()
	if ep.spans != nil {
		sum = ep.spans.after(sum, ep.rules, now)
	}
	return b.counts(ep, sum)
}

// counts returns the figures of ep with its results in sum; b.mu is held.
func (b *Breaker) counts(ep *episode, sum uint64) (c Counts) {
	if ep.last != nil {
		sum -= ep.last.loss(ep.rules, callSeenOf(sum), false)
	}
	total, failed, slow := ep.tally(sum)
	c.Results, c.Failures, c.Slow = int(total), int(failed), int(slow)
	c.Consecutive = int(sum & rowMask >> rowShift)
	if ep.stall != nil {
		_, n := ep.stall.waiting(ep.rules, 0)
		c.Unanswered = int(max(n, 0))
	}
	if ep.state() == HalfOpen {
		c.Probes, c.ProbeSuccesses, c.ProbeFailures = len(ep.out.leases), ep.out.good, ep.out.bad
	}
	if m := b.more.Load(); m != nil {
		c.Totals = m.totals()
	}
	return c
}

func (m *more) totals() Totals {
	return Totals{
		Opens:           m.opens.Load(),
		Neutral:         m.neutral.Load(),
		ProbesSucceeded: m.probesOK.Load(),
		ProbesFailed:    m.probesFailed.Load(),
		ProbesExpired:   m.probesExpired.Load(),
		ProbesNeutral:   m.probesOther.Load(),
		RefusedOpen:     m.refused[CauseOpen].Load(),
		RefusedHalfOpen: m.refused[CauseHalfOpen].Load(),
		RefusedForced:   m.refused[CauseForced].Load(),
		RefusedRamp:     m.refused[CauseRamp].Load(),
	}
}

func (b *Breaker) countProbe(how ProbeOutcome) {
	m := b.extra()
	switch how {
	case ProbeSucceeded:
		m.probesOK.Add(1)
	case ProbeNeutral:
		m.probesOther.Add(1)
	case ProbeExpired:
		m.probesExpired.Add(1)
	default:
		m.probesFailed.Add(1)
	}
}
