package breaker

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/internal/stripe"
)

// Counts are the figures of a breaker.
type Counts struct {
	// Results, Failures and Slow are those in the window, without those that
	// have left it. They are 0 where there is no window, and in other states
	// than closed and disabled. In a window of time with very many results they
	// have been halved (see [Window].Span): their shares are right then, and their
	// numbers are not.
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
	// Actions are what the breaker did.
	Actions

	// Shadow is what it would have done while [Config.Shadow] was set: openings
	// that cut nobody off, and refusals of calls that passed.
	Shadow Actions

	// Neutral counts the neutral ends of attempts that were not probes.
	Neutral uint64
}

// Actions count what a breaker does.
type Actions struct {
	// Opens counts the openings by a rule or a probe.
	Opens uint64

	// The ends of probes by outcome: ProbesFailed includes the slow ones.
	ProbesSucceeded, ProbesFailed, ProbesExpired, ProbesNeutral uint64

	// The refusals by cause.
	RefusedOpen, RefusedHalfOpen, RefusedForced, RefusedRamp uint64
}

// Plus returns the sum of t and u.
func (t Totals) Plus(u Totals) Totals {
	return Totals{t.Actions.plus(u.Actions), t.Shadow.plus(u.Shadow), t.Neutral + u.Neutral}
}

func (a Actions) plus(b Actions) Actions {
	a.Opens += b.Opens
	a.ProbesSucceeded += b.ProbesSucceeded
	a.ProbesFailed += b.ProbesFailed
	a.ProbesExpired += b.ProbesExpired
	a.ProbesNeutral += b.ProbesNeutral
	a.RefusedOpen += b.RefusedOpen
	a.RefusedHalfOpen += b.RefusedHalfOpen
	a.RefusedForced += b.RefusedForced
	a.RefusedRamp += b.RefusedRamp
	return a
}

// Refused returns the refusals of every cause.
func (a Actions) Refused() uint64 {
	return a.RefusedOpen + a.RefusedHalfOpen + a.RefusedForced + a.RefusedRamp
}

// Counts returns the figures as of now. It changes nothing: what only a call
// would find, such as a lease that has run out, is not in them.
func (b *Breaker) Counts() Counts { return b.countsAt(mono.Now()) }

func (b *Breaker) countsAt(now mono.Instant) Counts {
	b.mu.Lock()
	ep := b.now.Load()
	if ep.state() == retired {
		b.mu.Unlock()
		return b.heir(now).countsAt(now)
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
	return Totals{Actions: m.did.load(), Shadow: m.shadow.load(), Neutral: m.neutral.Load()}
}

// absorb adds the totals of a breaker that was dropped.
func (m *more) absorb(t Totals) {
	m.did.add(t.Actions)
	m.shadow.add(t.Shadow)
	m.neutral.Add(t.Neutral)
}

// acts returns where what happens under r is counted.
func (m *more) acts(r *rules) *acts {
	if r.cfg.Shadow {
		return &m.shadow
	}
	return &m.did
}

// acts counts Actions.
type acts struct {
	opens                                              atomic.Uint64
	probesOK, probesFailed, probesExpired, probesOther atomic.Uint64
	refused                                            [causes]stripe.Counter
}

func (a *acts) load() Actions {
	return Actions{
		Opens:           a.opens.Load(),
		ProbesSucceeded: a.probesOK.Load(),
		ProbesFailed:    a.probesFailed.Load(),
		ProbesExpired:   a.probesExpired.Load(),
		ProbesNeutral:   a.probesOther.Load(),
		RefusedOpen:     a.refused[CauseOpen].Load(),
		RefusedHalfOpen: a.refused[CauseHalfOpen].Load(),
		RefusedForced:   a.refused[CauseForced].Load(),
		RefusedRamp:     a.refused[CauseRamp].Load(),
	}
}

func (a *acts) add(n Actions) {
	a.opens.Add(n.Opens)
	a.probesOK.Add(n.ProbesSucceeded)
	a.probesFailed.Add(n.ProbesFailed)
	a.probesExpired.Add(n.ProbesExpired)
	a.probesOther.Add(n.ProbesNeutral)
	a.refused[CauseOpen].AddN(n.RefusedOpen)
	a.refused[CauseHalfOpen].AddN(n.RefusedHalfOpen)
	a.refused[CauseForced].AddN(n.RefusedForced)
	a.refused[CauseRamp].AddN(n.RefusedRamp)
}

func (a *acts) countProbe(how ProbeOutcome) {
	switch how {
	case ProbeSucceeded:
		a.probesOK.Add(1)
	case ProbeNeutral:
		a.probesOther.Add(1)
	case ProbeExpired:
		a.probesExpired.Add(1)
	default:
		a.probesFailed.Add(1)
	}
}
