package breaker

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// model is the breaker said plainly: lists that are searched, one caller at a
// time. It is told how long each opening lasts, since that is drawn.
type model struct {
	c       Config // defaults filled
	percent struct{ fail, slow, probe int }

	state State
	gen   uint64

	// Closed and disabled.
	since   mono.Instant
	bucket  int64
	results []modelResult
	row     int
	flying  []*modelTicket
	ring    int   // the stall rule's, a new one with another After
	alive   int64 // slot of the last good answer
	wasGood bool

	// Open and half-open.
	nth       int
	until     mono.Instant
	probes    []*modelTicket
	good, bad int
	spread    func() float64

	ramping   bool
	rampSince mono.Instant
	credit    uint64

	totals Totals

	asked  time.Duration        // by the result that is being booked
	lasts  func() time.Duration // of the opening that is happening
	events []modelEvent
}

type modelResult struct {
	bucket       int64
	failed, slow bool
}

type modelTicket struct {
	c                            Config // in force when it was given out
	ring                         int    // of the stall rule
	gen                          uint64
	sent                         mono.Instant // the dependency's time counts from here
	probe, answered, gone, inert bool
	queued                       bool // to be sent
	hidden                       bool // gone until then
	ended                        bool // by its owner
	over                         bool // as a lease
	took                         time.Duration
	until                        mono.Instant // the end of the lease
	lasts                        time.Duration
}

// modelEvent is a transition, or the end of a probe.
type modelEvent struct {
	From, To State
	Reason   Reason
	Gen      uint64
	Results  int
	Failures int
	Slow     int
	Row      int
	Outcome  ProbeOutcome
	Took     time.Duration
}

func (m *model) window() (total, failed, slow int) {
	from := 0
	if n := m.c.Window.Calls; n > 0 {
		from = max(0, len(m.results)-n)
	}
	for _, r := range m.results[from:] {
		if m.c.Window.Span > 0 && r.bucket <= m.bucket-int64(m.c.Window.Buckets) {
			continue
		}
		total++
		if r.failed {
			failed++
		}
		if r.slow {
			slow++
		}
	}
	return total, failed, slow
}

// turn moves the window on; a clock that runs backwards does not move it back.
func (m *model) turn(now mono.Instant) {
	if m.c.Window.Span > 0 && (m.state == Closed || m.state == Disabled) {
		width := m.c.Window.Span / time.Duration(m.c.Window.Buckets)
		d := now.Sub(m.since)
		if d >= 0 {
			m.bucket = max(m.bucket, int64(d/width))
		}
	}
}

func (m *model) enter(to State, why Reason, at mono.Instant) {
	e := modelEvent{From: m.state, To: to, Reason: why, Gen: m.gen + 1, Row: m.row}
	if m.state == Closed || m.state == Disabled {
		e.Results, e.Failures, e.Slow = m.window()
	}
	m.events = append(m.events, e)
	m.state = to
	m.gen++
	m.results, m.row, m.bucket, m.since, m.flying = nil, 0, 0, at, nil
	m.wasGood, m.ramping = false, false
	m.probes, m.good, m.bad = nil, 0, 0
}

func (m *model) open(why Reason, nth int, at mono.Instant) {
	if why != ReasonReleased {
		m.acts().Opens++
	}
	m.enter(Open, why, at)
	m.nth = nth
	m.until = at.Add(m.lasts())
}

func (m *model) recover(at mono.Instant) {
	m.enter(Closed, ReasonRecovered, at)
	if m.c.RampUp > 0 {
		m.ramping, m.rampSince, m.credit = true, at, 1<<32-1
	}
}

// Stall rule.

func (m *model) slot(t mono.Instant) int64 {
	shift, _ := stallGrid(m.c.Stall.After)
	width, ns := int64(1)<<shift, t.Pack()
	s := ns / width
	if ns < 0 && ns%width != 0 {
		s--
	}
	return s
}

func (m *model) silent(now mono.Instant) bool {
	if m.c.Stall.After == 0 || m.state != Closed {
		return false
	}
	_, far := stallGrid(m.c.Stall.After)
	if m.wasGood && m.slot(now)-m.alive < far {
		return false
	}
	overdue, all := 0, 0
	for _, t := range m.flying {
		if t.gone {
			continue
		}
		all++
		if !t.answered && m.slot(now)-m.slot(t.sent) >= far {
			overdue++
		}
	}
	return overdue >= m.c.Stall.Calls && 2*overdue >= all
}

func (m *model) openStalled(now mono.Instant) {
	m.asked = 0
	m.turn(now)
	m.open(ReasonStalled, 1, now)
}

func (m *model) goodAnswer(now mono.Instant) {
	if m.c.Stall.After > 0 && (!m.wasGood || m.slot(now) > m.alive) {
		m.alive, m.wasGood = m.slot(now), true
	}
}

// admit returns the ticket, or nil and the cause of the refusal.
func (m *model) admit(now mono.Instant, forced bool) (*modelTicket, Cause) {
	m.settle(now)
	if m.silent(now) {
		m.openStalled(now)
	}
	if m.state == Open && (!now.Before(m.until) || forced) {
		why := ReasonCooldownOver
		if now.Before(m.until) {
			why = ReasonProbeForced
		}
		m.enter(HalfOpen, why, now)
	}
	t := &modelTicket{c: m.c, ring: m.ring, gen: m.gen, sent: now, until: now.Add(m.c.ProbeTimeout), lasts: m.c.ProbeTimeout}
	switch m.state {
	case Open:
		return m.refuse(CauseOpen)
	case ForcedOpen:
		return m.refuse(CauseForced)
	case HalfOpen:
		if !m.room() {
			return m.refuse(CauseHalfOpen)
		}
		t.probe = true
		m.probes = append(m.probes, t)
		return t, 0
	}
	if share, on := m.share(now); on {
		before := m.credit >> 32
		m.credit += share
		if m.credit>>32 == before {
			return m.refuse(CauseRamp)
		}
	}
	m.flying = append(m.flying, t)
	return t, 0
}

// acts returns where what happens now is counted.
func (m *model) acts() *Actions {
	if m.c.Shadow {
		return &m.totals.Shadow
	}
	return &m.totals.Actions
}

func (m *model) refuse(why Cause) (*modelTicket, Cause) {
	a := m.acts()
	*map[Cause]*uint64{
		CauseOpen: &a.RefusedOpen, CauseHalfOpen: &a.RefusedHalfOpen, CauseForced: &a.RefusedForced, CauseRamp: &a.RefusedRamp,
	}[why]++
	if m.c.Shadow {
		return &modelTicket{inert: true}, 0
	}
	return nil, why
}

func (m *model) share(now mono.Instant) (uint64, bool) {
	if !m.ramping {
		return 0, false
	}
	t := max(now.Sub(m.rampSince), 0)
	if t >= m.c.RampUp {
		m.ramping = false // for those with an older reading, too
		return 0, false
	}
	return uint64((1 << 32) * (m.c.RampFrom + (1-m.c.RampFrom)*float64(t)/float64(m.c.RampUp))), true
}

func (m *model) answered(t *modelTicket, now mono.Instant) {
	if t.inert || t.answered || t.ended {
		return
	}
	if t.probe {
		if t.gen == m.gen {
			m.settle(now)
		}
		if !t.over {
			t.answered, t.took = true, now.Sub(t.sent)
		}
		return
	}
	t.answered, t.took = true, now.Sub(t.sent)
	if t.gen == m.gen && t.ring == m.ring && !t.gone {
		m.goodAnswer(now)
	}
}

func (t *modelTicket) unwatch() {
	if !t.answered && !t.ended {
		t.gone = true
	}
}

func (t *modelTicket) queue() {
	t.queued, t.hidden = true, t.hidden || !t.gone
	t.unwatch()
}

func (t *modelTicket) begin(now mono.Instant) {
	if !t.answered && !t.ended {
		t.sent, t.gone = now, t.gone && !t.hidden
	}
	t.queued, t.hidden = false, false
}

func (m *model) done(t *modelTicket, o Outcome, now mono.Instant) {
	if t.inert || t.ended {
		return
	}
	t.ended = true
	verdict := o.Verdict
	if t.probe {
		if t.gen != m.gen {
			return
		}
		m.settle(now)
		if t.over || t.gen != m.gen {
			return
		}
		took := now.Sub(t.sent)
		if t.answered {
			took = t.took
		}
		m.asked = o.RetryAfter
		switch verdict {
		case Success:
			m.probeEnded(t, m.judgeProbe(took), took, now)
		case Neutral:
			m.probeEnded(t, ProbeNeutral, took, now)
		default:
			m.probeEnded(t, ProbeFailed, took, now)
		}
		return
	}
	if verdict == Throttled {
		verdict = Neutral
		if t.c.CountThrottled {
			verdict = Failure
		}
	}
	if verdict == Neutral {
		m.totals.Neutral++
	}
	if t.gen != m.gen {
		return
	}
	m.flying = slices.DeleteFunc(m.flying, func(f *modelTicket) bool { return f == t })
	switch verdict {
	case Success:
		if t.ring == m.ring {
			m.goodAnswer(now)
		}
	case Neutral:
		if t.c.Stall.After > 0 && m.silent(now) {
			m.openStalled(now)
		}
		return
	}
	failed := verdict != Success
	took := now.Sub(t.sent)
	if t.answered {
		took = t.took
	}
	m.asked = o.RetryAfter
	m.record(failed, t.c.SlowCall > 0 && took > t.c.SlowCall, now)
	if failed && t.c.Stall.After > 0 && m.silent(now) {
		m.openStalled(now)
	}
}

func (m *model) record(failed, slow bool, now mono.Instant) {
	m.turn(now)
	if m.c.Window != (Window{}) {
		m.results = append(m.results, modelResult{m.bucket, failed, slow && m.c.SlowCall > 0})
	}
	m.row++
	if !failed {
		m.row = 0
	}
	if m.state == Disabled {
		return
	}
	total, failures, slows := m.window()
	switch {
	case m.c.Window == (Window{}):
	case total >= m.c.MinCalls && m.c.FailureRate > 0 && failures*100 >= m.percent.fail*total:
		m.open(ReasonFailureRate, 1, now)
		return
	case total >= m.c.MinCalls && m.c.SlowRate > 0 && slows*100 >= m.percent.slow*total:
		m.open(ReasonSlowRate, 1, now)
		return
	case m.c.Failures > 0 && failures >= m.c.Failures:
		m.open(ReasonFailures, 1, now)
		return
	}
	if failed && m.c.Consecutive > 0 && m.row >= m.c.Consecutive {
		m.open(ReasonConsecutive, 1, now)
	}
}
