package breaker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
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

func TestD004_ANeutralProbeGivesItsSlotBack(t *testing.T) {
	r := newRig(t, p0())
	r.opened()
	r.step(time.Second)
	for range 3 {
		p := r.probe()
		r.refused()
		r.done(p, Neutral)
		r.state(HalfOpen)
	}
	r.done(r.probe(), Success) // a client fault is a success: it answered
	r.state(Closed)
	require.EqualValues(t, 3, r.counts().Totals.ProbesNeutral)
}

// Also D022: a refusal further in is not recorded.
func TestD005_ARefusalFurtherInReturnsTheProbe(t *testing.T) {
	r := newRig(t, p0())
	r.opened()
	r.step(time.Second)
	full := r.probe() // the bulkhead turns it away
	r.done(full, Neutral)
	r.state(HalfOpen)
	require.Zero(t, r.counts().Probes)
	r.done(r.probe(), Success)
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

func TestD010_TheWindowSlides(t *testing.T) {
	for shift := time.Duration(0); shift <= 10*time.Second; shift += 100 * ms {
		r := newRig(t, Config{Window: Window{Span: 10 * time.Second}, FailureRate: 0.5})
		r.step(shift)
		for range 100 { // 10 a second
			r.call(1, Success)
			r.step(100 * ms)
		}
		for range 9 {
			r.call(1, Failure)
			r.step(100 * ms)
		}
		r.state(Closed)
		c := r.counts()
		require.InDelta(t, 0.09, float64(c.Failures)/float64(c.Results), 0.02)
	}
}

// The clock is one that no step of the wall clock moves, and nothing here reads
// another.
func TestD011_ElapsedTimeIsMonotonic(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		forbidden := []string{"time.Now", "time.Since", "time.Until", "Unix"}
		if !strings.HasPrefix(f, "fleet") { // which keeps in touch with a store (S1)
			forbidden = append(forbidden, "time.Time", "time.AfterFunc", "time.NewTimer", "\tgo ")
		}
		for _, clock := range forbidden {
			require.NotContains(t, string(text), clock, f)
		}
	}
	synctest.Test(t, func(t *testing.T) { // the public methods, which read it
		c := p0()
		c.Window = Window{Span: 10 * time.Second}
		b, err := New("db", c)
		require.NoError(t, err)
		for range 5 {
			time.Sleep(time.Second)
			call(t, b, Failure)
		}
		require.Equal(t, Open, b.State())
		_, err = b.Allow()
		var open *OpenError
		require.ErrorAs(t, err, &open)
		time.Sleep(time.Second - 1)
		require.Equal(t, time.Duration(1), open.RetryAfter())
		require.False(t, b.WouldAdmit())
		time.Sleep(time.Nanosecond)
		require.True(t, b.WouldAdmit())
		tk, err := b.Allow()
		require.NoError(t, err)
		require.True(t, tk.Probe())
		tk.Answered()
		time.Sleep(200 * ms)
		require.Equal(t, Closed, b.State())
		tk.Done(Outcome{Verdict: Failure})
		require.Equal(t, Closed, b.State())
	})
}

func TestD013_ForcedOpenIsLeftByReleaseOnly(t *testing.T) {
	for _, from := range []State{Closed, Open, HalfOpen} {
		t.Run(from.String(), func(t *testing.T) {
			r := newRig(t, p0())
			held := r.admit()
			if from != Closed {
				r.opened()
			}
			if from == HalfOpen {
				r.step(time.Second)
				held = r.probe()
			}
			r.b.forceOpen("maintenance", r.now)
			for i := range 100 {
				r.step(100 * ms) // 10 cooldowns in all
				open := r.refused()
				require.True(t, open.Forced())
				require.Zero(t, open.RetryAfterAt(r.now))
				require.Equal(t, "breaker: db is forced open: maintenance", open.Error())
				if i == 50 {
					r.done(held, Success)
				}
				_, err := r.b.allow(r.now, true)
				require.ErrorIs(t, err, ErrOpen, "B10: no probe passes")
			}
			r.state(ForcedOpen)
			r.b.disable(r.now)
			r.state(ForcedOpen) // B10
			r.b.release(r.now)
			r.state(Open)
			require.Equal(t, time.Second, r.refused().RetryAfterAt(r.now))
		})
	}
}

func TestD014_ReleaseAndEnableHaveADefinedEnd(t *testing.T) {
	c := p0()
	c.Probes = 2
	r := newRig(t, c)
	r.opened()
	r.step(time.Second)
	old := r.probe()
	r.b.forceOpen("", r.now)
	r.b.release(r.now)
	r.step(time.Second)
	first := r.probe()
	r.done(old, Failure)
	r.state(HalfOpen)
	r.probe() // the new episode has all its slots
	r.refused()
	r.done(first, Failure)
	r.state(Open)

	r.b.disable(r.now)
	r.call(50, Success)
	require.Equal(t, 10, r.counts().Results) // B10: it still measures
	r.call(50, Failure)
	r.state(Disabled)
	r.b.enable(r.now)
	r.state(Closed)
	require.Zero(t, r.counts().Results)
	r.b.enable(r.now) // nothing to end
	require.Equal(t, ReasonEnabled, r.lastReason())
}
