package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// duo is two rigs on one clock.
func duo(t *testing.T, first, second Config) (*rig, *rig) {
	return newRig(t, first), newRig(t, second)
}

func TestB14_ARefusalBySecondLeavesNothingOnFirst(t *testing.T) {
	stall := p0()
	stall.Stall = Stall{After: ms, Calls: 3}
	long := p0()
	long.Cooldown = time.Minute
	m, target := duo(t, stall, long)
	target.opened()
	before := m.counts()
	for range 5 {
		_, err := allowBoth(m.b, target.b, m.now)
		require.ErrorIs(t, err, ErrOpen)
	}
	require.Equal(t, before, m.counts(), "no slot, no count")
	require.Empty(t, m.moves)

	// A probe's slot is given back, and the cooldown is not spent.
	m.opened()
	m.step(time.Second)
	_, err := allowBoth(m.b, target.b, m.now)
	require.ErrorIs(t, err, ErrOpen)
	require.Equal(t, 59*time.Second, err.(*OpenError).RetryAfterAt(m.now))
	require.Zero(t, m.counts().Probes)
	require.Zero(t, m.counts().Totals.ProbesNeutral)
	m.probe()
}

func TestB14_RetryAfterIsTheLarger(t *testing.T) {
	long := p0()
	long.Cooldown = 5 * time.Second
	for _, swap := range []bool{false, true} {
		m, target := duo(t, p0(), long)
		if swap {
			m, target = duo(t, long, p0())
		}
		m.opened()
		target.opened()
		_, err := allowBoth(m.b, target.b, m.now)
		require.Equal(t, 5*time.Second, err.(*OpenError).RetryAfterAt(m.now))
		target.b.forceOpen("", m.now)
		_, err = allowBoth(m.b, target.b, m.now)
		require.True(t, err.(*OpenError).Forced())
	}
}

func TestB14_TheResultIsBookedOnBoth(t *testing.T) {
	a, b := p0(), p0()
	b.MinCalls = 3
	a.ProbeTimeout, b.ProbeTimeout = 200*ms, 100*ms
	m, target := duo(t, a, b)
	for range 3 {
		p, err := allowBoth(m.b, target.b, m.now)
		require.NoError(t, err)
		require.False(t, p.Probe())
		p.DoneAt(Outcome{Verdict: Failure}, m.now)
		p.DoneAt(Outcome{Verdict: Failure}, m.now)
	}
	target.state(Open)
	m.state(Closed)
	require.Equal(t, 3, m.counts().Failures)
	m.call(2, Failure)
	m.step(time.Second)
	p, err := allowBoth(m.b, target.b, m.now)
	require.NoError(t, err)
	require.True(t, p.Probe())
	require.Equal(t, 100*ms, p.ProbeLimit())
	p.DoneAt(Outcome{Verdict: Success}, m.now)
	m.state(Closed)
	target.now = m.now
	target.state(Closed)
}

func TestB14_APanickingHookLeavesNothing(t *testing.T) {
	m, c := newRig(t, p0()), p0()
	c.Hooks.Transition = func(tr Transition) {
		if tr.To == HalfOpen {
			panic("hook")
		}
	}
	target := newRig(t, c)
	m.opened()
	target.opened()
	m.step(time.Second)
	require.Panics(t, func() { _, _ = allowBoth(m.b, target.b, m.now) })
	require.Zero(t, m.counts().Probes)
	require.Zero(t, target.counts().Probes)
}

// A pair that was moved is the admission, and the one that it was does nothing.
func TestB1_AMovedPairEndsTheAdmission(t *testing.T) {
	m, target := duo(t, p0(), p0())
	p, err := allowBoth(m.b, target.b, m.now)
	require.NoError(t, err)
	var moved Pair
	p.Move(&moved)
	p.DoneAt(Outcome{Verdict: Failure}, m.now)
	require.Zero(t, m.counts().Failures+target.counts().Failures)
	moved.DoneAt(Outcome{Verdict: Failure}, m.now)
	moved.DoneAt(Outcome{Verdict: Failure}, m.now)
	require.EqualValues(t, 1, m.counts().Failures)
	require.EqualValues(t, 1, target.counts().Failures)

	m.opened()
	m.step(time.Hour)
	p, err = allowBoth(m.b, nil, m.now)
	require.NoError(t, err)
	require.True(t, p.Probe())
	var probe Pair
	p.Move(&probe)
	require.True(t, probe.Probe())
	require.False(t, p.Probe())
	probe.DoneAt(Outcome{Verdict: Neutral}, m.now)
	require.Zero(t, m.counts().Probes, "the slot came back")
}
