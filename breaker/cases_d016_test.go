package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestD016_AbandonedCallsAreNeutral(t *testing.T) {
	r := newRig(t, p0())
	r.call(200, Neutral)
	r.state(Closed)
	require.Zero(t, r.counts().Failures)
	require.Zero(t, r.counts().Results)
	require.EqualValues(t, 200, r.counts().Totals.Neutral)
}

func TestD019_SlowAndFailedAreTwoRates(t *testing.T) {
	c := Config{
		Window: Window{Calls: 10}, MinCalls: 10, FailureRate: 0.5, SlowCall: 100 * ms, SlowRate: 0.5,
	}
	type step struct {
		n    int
		took time.Duration
		v    Verdict
	}
	const slow, fast = 100*ms + 1, 100 * ms // strictly longer (B3)
	for _, tc := range []struct {
		name   string
		steps  []step
		state  State
		reason Reason
	}{
		{"a", []step{{5, slow, Success}, {5, fast, Success}}, Open, ReasonSlowRate},
		{"b", []step{{4, slow, Success}, {4, fast, Failure}, {2, fast, Success}}, Closed, 0},
		{"c", []step{{9, slow, Success}}, Closed, 0},
		{"a slow failure counts for both", []step{{5, fast, Success}, {4, slow, Failure}, {1, slow, Success}}, Open, ReasonSlowRate},
		{"and for failures", []step{{5, fast, Success}, {4, slow, Failure}, {1, fast, Failure}}, Open, ReasonFailureRate},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, c)
			for _, s := range tc.steps {
				for range s.n {
					tk := r.admit()
					r.step(s.took)
					r.done(tk, s.v)
				}
			}
			r.state(tc.state)
			if tc.reason != 0 {
				require.Equal(t, tc.reason, r.lastReason())
			}
		})
	}
}

func TestD021_ThrottledIsNeutralUnlessAsked(t *testing.T) {
	r := newRig(t, p0())
	r.call(50, Throttled)
	r.state(Closed)
	require.Zero(t, r.counts().Results)

	c := p0()
	c.CountThrottled = true
	r = newRig(t, c)
	r.call(4, Throttled)
	r.state(Closed)
	r.call(1, Throttled)
	r.state(Open)

	// A throttled probe has failed in either case.
	r = newRig(t, p0())
	r.opened()
	r.step(time.Second)
	r.done(r.probe(), Throttled)
	r.state(Open)
}

// Also D087: refusals are counted by cause.
func TestD022_RefusalsAreNotRecorded(t *testing.T) {
	r := newRig(t, p0())
	r.call(500, Neutral) // turned away further in
	require.Zero(t, r.counts().Results)
	r.opened()
	for range 500 {
		r.step(ms)
		r.refused()
	}
	require.Equal(t, 500*ms, r.refused().RetryAfterAt(r.now))
	require.EqualValues(t, 501, r.counts().Totals.RefusedOpen)
	r.step(500 * ms)
	r.probe()
	r.refused()
	require.EqualValues(t, 1, r.counts().Totals.RefusedHalfOpen)
}

func TestD025_TheCooldownIsSpread(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		c := p0()
		c.Cooldown, c.Jitter = 10*time.Second, 0.2
		r := newRig(t, c)
		r.opened()
		left := r.refused().RetryAfterAt(r.now)
		r.step(time.Second)
		require.Equal(t, left-time.Second, r.refused().RetryAfterAt(r.now), "one fixed time")
		low, high = min(low, left), max(high, left)
	}
	require.GreaterOrEqual(t, low, 8*time.Second)
	require.LessOrEqual(t, high, 12*time.Second)
	require.Greater(t, high-low, 3200*ms, "spread over 80 % of the range")
}

// B9: the share of calls admitted after a recovery follows the planned line.
func TestD026_TheRampFollowsItsLine(t *testing.T) {
	c := p0()
	c.RampUp, c.RampFrom = 10*time.Second, 0.1
	r := newRig(t, c)
	recovered := func() {
		r.opened()
		r.step(time.Second)
		r.done(r.probe(), Success)
		r.state(Closed)
	}
	recovered()
	last := 0
	for second := range 10 {
		admitted := 0
		for range 1000 {
			if tk, err := r.b.AllowAt(r.now); err == nil {
				admitted++
				r.done(&tk, Success)
			}
			r.step(ms)
		}
		planned := 1000 * (0.1 + 0.9*(float64(second)+0.5)/10)
		require.InDelta(t, planned, admitted, 30)
		require.Greater(t, admitted, last)
		last = admitted
	}
	r.call(1000, Success) // the ramp is over
	require.Equal(t, CauseRamp, newRampRefusal(t, c))

	// At one call a second the first gets through at once.
	r = newRig(t, c)
	recovered()
	r.call(1, Success)

	// Failures half-way open again.
	r = newRig(t, c)
	recovered()
	r.step(5 * time.Second)
	for i := 0; r.b.StateAt(r.now) == Closed; i++ {
		require.Less(t, i, 100)
		if tk, err := r.b.AllowAt(r.now); err == nil {
			r.done(&tk, []Verdict{Success, Failure}[i%2])
		}
		r.step(ms)
	}
	require.Equal(t, time.Second, r.moves[len(r.moves)-1].Cooldown, "B8: back to base")
}

func newRampRefusal(t *testing.T, c Config) Cause {
	r := newRig(t, c)
	r.opened()
	r.step(time.Second)
	r.done(r.probe(), Success)
	r.call(1, Success)
	open := r.refused()
	require.Equal(t, Closed, open.State())
	require.Zero(t, open.RetryAfterAt(r.now))
	require.EqualValues(t, 1, r.counts().Totals.RefusedRamp)
	return open.Cause()
}

func TestD027_TheCooldownGrowsAndFallsBack(t *testing.T) {
	c := p0()
	c.CooldownFactor, c.MaxCooldown = 2, 5*time.Second
	r := newRig(t, c)
	r.opened()
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		require.Equal(t, want*time.Second, r.refused().RetryAfterAt(r.now))
		r.step(want*time.Second - 1)
		r.refused()
		r.step(1)
		r.done(r.probe(), Failure)
	}
	r.step(5 * time.Second)
	r.done(r.probe(), Success)
	r.opened()
	require.Equal(t, time.Second, r.refused().RetryAfterAt(r.now))
}

func TestD067_AForcedProbeGoesOutEarly(t *testing.T) {
	c := p0()
	c.Cooldown = 30 * time.Second
	r := newRig(t, c)
	r.opened()
	r.step(15 * time.Second)
	p, err := r.b.allow(r.now, true)
	require.NoError(t, err)
	require.True(t, p.Probe())
	require.Equal(t, ReasonProbeForced, r.lastReason())
	for range 50 {
		_, err := r.b.allow(r.now, true)
		require.ErrorIs(t, err, ErrOpen)
	}
	r.done(&p, Failure)
	require.Equal(t, 30*time.Second, r.refused().RetryAfterAt(r.now))
	p2, err := r.b.allow(r.now, true)
	require.NoError(t, err)
	r.done(&p2, Success)
	r.state(Closed)
	p3, err := r.b.allow(r.now, true)
	require.NoError(t, err)
	require.False(t, p3.Probe(), "while closed it is an ordinary call")
}

func TestD086_TheStateIsWorkedOutWhenRead(t *testing.T) {
	r := newRig(t, p0())
	r.opened()
	r.step(time.Second)
	r.state(HalfOpen) // without traffic
	require.Equal(t, []State{Open}, r.path(), "B6: reading does not transition")
	r.done(r.probe(), Failure)
	r.state(Open)
}
