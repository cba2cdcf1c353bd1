package retry

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestR3_TheWaitsOfEachJitter(t *testing.T) {
	const ms = time.Millisecond
	b := Backoff{Base: 100 * ms, Factor: 2, Cap: 350 * ms}
	for _, tc := range []struct {
		jitter Jitter
		n      int
		prev   time.Duration
		u      float64
		want   time.Duration
	}{
		{NoJitter, 1, 0, 0.5, 100 * ms},
		{NoJitter, 2, 0, 0.5, 200 * ms},
		{NoJitter, 3, 0, 0.5, 350 * ms},
		{NoJitter, 1000, 0, 0.5, 350 * ms},
		{NoJitter, 0, 0, 0.5, 100 * ms},
		{NoJitter, -7, 0, 0.5, 100 * ms},
		{FullJitter, 1, 0, 1, 100 * ms},
		{FullJitter, 2, 0, 0.25, 50 * ms},
		{FullJitter, 3, 0, 0.5, 175 * ms}, // capped before the jitter
		{FullJitter, 3, 0, 1e-300, 1},     // never 0
		{EqualJitter, 1, 0, 1, 100 * ms},
		{EqualJitter, 2, 0, 0.5, 150 * ms},
		{EqualJitter, 2, 0, 1e-300, 100 * ms},
		{DecorrelatedJitter, 1, 0, 1, 300 * ms},
		{DecorrelatedJitter, 1, 0, 1e-300, 100 * ms},
		{DecorrelatedJitter, 9, 100 * ms, 0.5, 200 * ms},
		{DecorrelatedJitter, 9, 300 * ms, 1, 350 * ms},
		{DecorrelatedJitter, 9, math.MaxInt64, 0.5, 225 * ms},
		{DecorrelatedJitter, 9, 6148914691236517206, 1, 350 * ms}, // 3 x that is 2 in 64 bits
		{DecorrelatedJitter, 9, -5, 1, 300 * ms},
		// Random numbers that are none.
		{FullJitter, 1, 0, math.NaN(), 100 * ms},
		{FullJitter, 1, 0, math.Inf(1), 100 * ms},
		{FullJitter, 1, 0, math.Inf(-1), 1},
		{EqualJitter, 1, 0, -3, 50 * ms},
	} {
		b.Jitter = tc.jitter
		require.Equal(t, tc.want, b.Delay(tc.n, tc.prev, tc.u), "%+v", tc)
	}
}

func TestR3_TheStandardBackoff(t *testing.T) {
	var b Backoff
	require.Equal(t, 50*time.Millisecond, b.Delay(1, 0, 1))
	require.Equal(t, 100*time.Millisecond, b.Delay(2, 0, 1))
	require.Equal(t, 5*time.Second, b.Delay(40, 0, 1))
	require.Equal(t, time.Hour, Backoff{Base: time.Hour}.Delay(1, 0, 1), "a Base beyond 5 s is its own Cap")
	require.Zero(t, NoWait().Delay(3, 0, 1))
	require.True(t, NoWait() == NoWait())
	require.False(t, b == NoWait())
}

func TestD029_WaitsStayWithinTheirBounds(t *testing.T) {
	for _, most := range []time.Duration{30 * time.Second, math.MaxInt64} {
		for _, base := range []time.Duration{1, time.Microsecond, 50 * time.Millisecond, 30 * time.Second} {
			for _, factor := range []float64{1, 1.0000001, 2, 1e9, math.MaxFloat64} {
				b := Backoff{Base: base, Factor: factor, Cap: most, Jitter: NoJitter}
				require.NoError(t, b.Check())
				last := time.Duration(0)
				for n := 0; n <= 10_000; n++ {
					d := b.Delay(n, 0, 1)
					if d <= 0 || d > most || d < last {
						t.Fatalf("%+v: wait %d is %v after %v", b, n, d, last)
					}
					last = d
				}
			}
		}
	}
}

func TestR3_PropertyEveryWaitIsWithinItsBounds(t *testing.T) {
	durations := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "ns") >> rapid.IntRange(0, 62).Draw(t, "shift"))
	})
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Base:   max(durations.Draw(t, "Base"), 1),
			Factor: rapid.Float64Range(1, math.MaxFloat64).Draw(t, "Factor"),
			Jitter: Jitter(rapid.IntRange(0, jitters-1).Draw(t, "Jitter")),
		}
		b.Cap = max(b.Base, durations.Draw(t, "Cap"))
		require.NoError(t, b.Check())
		u := rapid.Float64Range(math.SmallestNonzeroFloat64, 1).Draw(t, "u")
		prev := time.Duration(0)
		for n := range 70 {
			d := b.Delay(n, prev, u)
			require.Greater(t, d, time.Duration(0))
			require.LessOrEqual(t, d, b.Cap)
			require.Equal(t, d, b.Delay(n, prev, u), "pure")
			if b.Jitter == DecorrelatedJitter {
				require.GreaterOrEqual(t, d, b.Base)
			}
			pause := durations.Draw(t, "pause")
			require.GreaterOrEqual(t, b.delayAfter(pause, n, prev, u), pause)
			prev = d
		}
	})
}

func FuzzDelay(f *testing.F) {
	f.Add(int64(0), 0.0, int64(0), uint8(0), 1, int64(0), 1.0, int64(0))
	f.Add(int64(1), 2.0, int64(math.MaxInt64), uint8(0), 10_000, int64(0), 1e-300, int64(math.MaxInt64))
	f.Add(int64(math.MaxInt64), math.MaxFloat64, int64(math.MaxInt64), uint8(1), math.MaxInt, int64(-1), 1.0, int64(1))
	f.Add(int64(3600e9), 1.5, int64(1), uint8(2), -1, int64(math.MaxInt64), math.NaN(), int64(-1))
	f.Add(int64(-1), math.Inf(1), int64(-1), uint8(3), math.MinInt, int64(math.MinInt64), math.Inf(-1), int64(math.MinInt64))
	f.Add(int64(50e6), 2.0, int64(5e9), uint8(2), 3, int64(100e6), 0.5, int64(0))
	f.Add(int64(50e6), 2.0, int64(5e9), uint8(3), 30, int64(0), 0.5, int64(1e9))
	f.Add(int64(0), 0.0, int64(0), uint8(1), 2, int64(0), 1.0, int64(math.MaxInt64))
	f.Add(int64(50e6), -2.0, int64(5e9), uint8(200), 3, int64(50e6), 2.0, int64(30e9))
	f.Fuzz(func(t *testing.T, base int64, factor float64, most int64, jitter uint8, n int, prev int64, u float64, pause int64) {
		b := Backoff{Base: time.Duration(base), Factor: factor, Cap: time.Duration(most), Jitter: Jitter(jitter)}
		d := b.Delay(n, time.Duration(prev), u)
		if d < 1 {
			t.Fatalf("%+v: Delay(%d, %d, %v) = %d", b, n, prev, u, d)
		}
		if b.Check() == nil && d > b.WithDefaults().Cap {
			t.Fatalf("%+v: Delay(%d, %d, %v) = %v, beyond its Cap", b, n, prev, u, d)
		}
		if after := b.delayAfter(time.Duration(pause), n, time.Duration(prev), u); after < 1 || after < time.Duration(pause) {
			t.Fatalf("%+v: delayAfter(%d, %d, %d, %v) = %v", b, pause, n, prev, u, after)
		}
	})
}

func TestBackoffFaultsAreNamed(t *testing.T) {
	for want, b := range map[string]Backoff{
		"retry: Base = -1ns: must be positive, or 0 for the default; retry.NoWait() repeats at once": {Base: -1},
		"retry: Factor = 0.5: must be at least 1 and finite, or 0 for the default":                   {Factor: 0.5},
		"retry: Factor = NaN: must be at least 1 and finite, or 0 for the default":                   {Factor: math.NaN()},
		"retry: Factor = +Inf: must be at least 1 and finite, or 0 for the default":                  {Factor: math.Inf(1)},
		"retry: Cap = -1s: must be positive, or 0 for the default":                                   {Cap: -time.Second},
		"retry: Cap = 1ms: must not be less than Base = 50ms":                                        {Cap: time.Millisecond},
		"retry: Jitter = jitter(4): is not one of the modes of package retry":                        {Jitter: 4},
	} {
		require.EqualError(t, b.Check(), want)
	}
	for _, b := range []Backoff{{}, NoWait(), {Base: time.Hour}, {Factor: 1}, {Cap: math.MaxInt64, Jitter: NoJitter}} {
		require.NoError(t, b.Check())
	}
	require.Equal(t, "decorrelated", DecorrelatedJitter.String())
}
