package breaker

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Half-open.

func (m *model) needed() (successes, mayFail int) {
	if m.c.ProbeRate == 0 {
		return m.c.ProbeSuccesses, 0
	}
	need := 1
	for need*100 < m.percent.probe*m.c.Probes || need < m.c.ProbeSuccesses {
		need++
	}
	return need, m.c.Probes - need
}

func (m *model) probeEnded(t *modelTicket, how ProbeOutcome, took time.Duration, at mono.Instant) {
	t.over = true
	m.probes = slices.DeleteFunc(m.probes, func(p *modelTicket) bool { return p == t })
	a := m.acts()
	*map[ProbeOutcome]*uint64{
		ProbeSucceeded: &a.ProbesSucceeded, ProbeFailed: &a.ProbesFailed, ProbeSlow: &a.ProbesFailed,
		ProbeExpired: &a.ProbesExpired, ProbeNeutral: &a.ProbesNeutral,
	}[how]++
	m.events = append(m.events, modelEvent{Outcome: how, Took: took, Gen: m.gen})
	need, mayFail := m.needed()
	reason := ReasonProbeFailed
	switch how {
	case ProbeNeutral:
		return
	case ProbeSucceeded:
		m.good++
	case ProbeSlow:
		reason = ReasonProbeSlow
		m.bad++
	case ProbeExpired:
		reason = ReasonProbeExpired
		m.bad++
	default:
		m.bad++
	}
	if m.bad > mayFail {
		m.open(reason, m.nth+1, at)
	} else if m.good >= need {
		m.recover(at)
	}
}

func (m *model) judgeProbe(took time.Duration) ProbeOutcome {
	if m.c.ProbeLatency > 0 && took > m.c.ProbeLatency {
		return ProbeSlow
	}
	return ProbeSucceeded
}

// settle ends the leases that have run out, first the one that did first.
func (m *model) settle(now mono.Instant) {
	m.asked = 0
	for m.state == HalfOpen {
		var first *modelTicket
		for _, p := range m.probes {
			if !now.Before(p.until) && (first == nil || p.until.Before(first.until)) {
				first = p
			}
		}
		if first == nil {
			return
		}
		end := first.until
		if first.answered {
			m.probeEnded(first, m.judgeProbe(first.took), first.took, end)
		} else {
			m.probeEnded(first, ProbeExpired, first.lasts, end)
		}
	}
}

// lends gives a probe another lease.
func (m *model) lends(t *modelTicket, length time.Duration, now mono.Instant) {
	if !t.probe || t.ended || t.gen != m.gen {
		return
	}
	m.settle(now)
	if !t.over && t.gen == m.gen {
		t.lasts, t.until = now.Sub(t.sent)+length, now.Add(length)
	}
}

func (m *model) room() bool {
	n := len(m.probes)
	if m.c.ProbeRate > 0 {
		n += m.good + m.bad
	}
	return n < m.c.Probes
}

// look tells the state that a call would find and whether it would pass, by
// trying it on a copy.
func (m *model) look(now mono.Instant) (State, bool) {
	twin := *m
	twin.events = nil
	twin.c.Shadow = false
	twin.probes = nil
	for _, p := range m.probes {
		q := *p
		twin.probes = append(twin.probes, &q)
	}
	twin.lasts = func() time.Duration {
		spread := 0.0
		if twin.events[len(twin.events)-1].From == HalfOpen {
			spread = m.spread()
		}
		return modelCooldown(&m.c, m.nthNext(), spread)
	}
	twin.flying = slices.Clone(m.flying)
	t, _ := twin.admit(now, false)
	return twin.state, t != nil
}

func (m *model) nthNext() int {
	if m.state == HalfOpen {
		return m.nth + 1
	}
	return 1
}

func modelCooldown(c *Config, nth int, spread float64) time.Duration {
	d := float64(c.Cooldown)
	for i := 1; i < nth; i++ {
		d *= c.CooldownFactor
		d = min(d, float64(c.MaxCooldown))
	}
	if c.Jitter == NoJitter {
		spread = 0
	}
	return time.Duration(d*(1+c.Jitter*spread) + 0.5)
}

// update puts a Config in force.
func (m *model) update(to *model, now mono.Instant) {
	m.settle(now)
	m.turn(now)
	old, c := m.c, to.c
	m.c, m.percent = c, to.percent
	if m.state == Closed || m.state == Disabled {
		if old.Window != c.Window || (old.SlowCall > 0) != (c.SlowCall > 0) {
			m.results, m.bucket, m.since = nil, 0, now
		}
		m.ramping = m.ramping && c.RampUp > 0
	}
	if old.Stall.After != c.Stall.After {
		m.ring++
		m.flying, m.wasGood = nil, false
	}
}
