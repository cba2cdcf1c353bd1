package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestD001_ALateSuccessDoesNotClose(t *testing.T) {
	r := newRig(t, p0())
	late := r.admit()
	r.call(5, Failure)
	r.state(Open)
	gen := r.b.Generation()
	r.step(100 * ms)
	r.done(late, Success)
	r.state(Open)
	require.Equal(t, gen, r.b.Generation())
	require.Equal(t, 900*ms, r.refused().RetryAfterAt(r.now))
	require.Equal(t, []State{Open}, r.path())
}

func TestD002_AProbeOfAnEarlierEpisodeIsNothing(t *testing.T) {
	c := p0()
	c.ProbeTimeout = 5 * time.Second
	r := newRig(t, c)
	r.opened()
	r.step(time.Second)
	a := r.probe()
	r.step(5 * time.Second) // the lease runs out
	r.refused()
	r.state(Open)
	r.step(time.Second)
	b := r.probe()
	require.Equal(t, 1, r.counts().Probes)
	r.done(a, Success)
	r.state(HalfOpen)
	require.Equal(t, 1, r.counts().Probes)
	r.refused()
	r.done(b, Failure)
	r.state(Open)
}

func TestD003_ASilentProbeLosesItsLease(t *testing.T) {
	r := newRig(t, p0())
	r.opened()
	r.step(time.Second)
	p := r.probe()
	require.Equal(t, 200*ms, p.ProbeLimit())
	r.step(199 * ms)
	r.state(HalfOpen)
	r.step(ms)
	r.state(Open) // B6: seen without being done
	require.Equal(t, []State{Open, HalfOpen}, r.path())
	r.refused()
	require.Equal(t, []State{Open, HalfOpen, Open}, r.path())
	require.Equal(t, ReasonProbeExpired, r.lastReason())
	r.step(time.Second)
	second := r.probe()
	r.refused()
	r.done(p, Success)
	r.state(HalfOpen)
	r.done(second, Success)
	r.state(Closed)
}

func TestD007_AFailedProbeReopens(t *testing.T) {
	c := p0()
	c.Probes, c.ProbeSuccesses = 3, 3
	r := newRig(t, c)
	r.opened()
	r.step(time.Second)
	r.done(r.probe(), Success)
	r.done(r.probe(), Failure)
	r.state(Open)
	require.Equal(t, time.Second, r.refused().RetryAfterAt(r.now))
	r.step(time.Second)
	r.done(r.probe(), Success)
	r.done(r.probe(), Success)
	r.state(HalfOpen)
	r.done(r.probe(), Success)
	r.state(Closed)
}

func TestD008_ClosingStartsAnEmptyWindow(t *testing.T) {
	c := p0()
	c.Probes, c.ProbeSuccesses, c.ProbeRate = 3, 0, 2.0/3
	r := newRig(t, c)
	r.opened()
	r.step(time.Second)
	r.done(r.probe(), Failure)
	r.done(r.probe(), Success)
	r.state(HalfOpen)
	r.done(r.probe(), Success)
	r.state(Closed)
	counts := r.counts()
	require.Zero(t, counts.Results)
	require.Zero(t, counts.Failures)
	r.call(4, Failure)
	r.state(Closed)
	r.call(1, Failure)
	r.state(Open)
}

func TestD009_NoStaleBucketAfterAnIdleGap(t *testing.T) {
	for _, gap := range []time.Duration{10 * time.Second, 27 * time.Second, 10_000 * time.Second} {
		r := newRig(t, Config{Window: Window{Span: 10 * time.Second}, FailureRate: 0.5})
		for range 9 {
			r.call(1, Failure)
			r.step(time.Second)
		}
		r.step(gap - time.Second)
		r.call(1, Failure)
		require.Equal(t, 1, r.counts().Results, gap)
		r.state(Closed)
	}
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
