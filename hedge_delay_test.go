package holdfast_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/internal/latency"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// R10: the delay is the latency of the last minute that a share stayed below,
// and the least one until enough is known.
func TestR10_TheDelayFollowsThePercentile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Timeout, p.Breaker = timeout.Off(), breaker.Off()
		p.Retry.Hedge = retry.Hedge{Percentile: 0.9}
		p.Retry.Budget = retry.NoBudget()
		k := newKit(t, p)
		hedgedAfter := func() time.Duration {
			var begin, second atomic.Int64
			begin.Store(time.Now().UnixNano())
			var hits atomic.Int32
			_, err := holdfast.Do(t.Context(), k, read, func(ctx context.Context) (int, error) {
				if hits.Add(1) == 2 {
					second.Store(time.Now().UnixNano())
					return 2, nil
				}
				return 1, silent(ctx)
			})
			require.NoError(t, err)
			return time.Duration(second.Load() - begin.Load())
		}
		require.Equal(t, 10*ms, hedgedAfter(), "the default floor")
		for range 2 * latency.Samples { // failures are no latencies, whatever the hedge took
			_, err := holdfast.Do(t.Context(), k, read, laneSteps(after(12*ms, down), after(time.Second, ok)).call)
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		require.Equal(t, 10*ms, hedgedAfter(), "still nothing is known")
		for i := range 500 {
			d := time.Duration(i%100+1) * ms // 1 to 100 ms; half of what is slower than the floor is hedged
			_, err := holdfast.Do(t.Context(), k, read, laneSteps(after(d, ok)).call)
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		got := hedgedAfter()
		require.GreaterOrEqual(t, got, 90*ms)
		require.LessOrEqual(t, got, 90*ms*9/8)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 10*ms, hedgedAfter(), "it is forgotten")
	})
}

// R10: the attempts that a hedge overtook count with the time they had. Without
// them only quick ones would be known, and ever more calls be hedged.
func TestR10_OvertakenAttemptsCountToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Breaker = breaker.Off()
		p.Retry.Budget = retry.NoBudget()
		p.Retry.Hedge.Percentile = 0.7
		k := newKit(t, p)
		for i := range 4 * latency.Samples { // half of them hang
			first := after(5*ms, ok)
			if i%2 == 0 {
				first = silent
			}
			_, err := holdfast.Do(t.Context(), k, read, laneSteps(first, ok).call)
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		begin := time.Now()
		_, err := holdfast.Do(t.Context(), k, read, laneSteps(silent, ok).call)
		require.NoError(t, err)
		require.Greater(t, time.Since(begin), 10*ms, "the least delay")
		require.LessOrEqual(t, time.Since(begin), 15*ms)
	})
}

// R10: an override may turn hedging on or off for a call, and its fixed delay is
// not lengthened by a percentile of the policy's.
func TestR10_AnOverrideMayHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fixed := &retry.Policy{Hedge: retry.Hedge{Delay: 3 * ms}}
		plain := newKit(t, quick())
		p := quick()
		p.Retry = &retry.Policy{Hedge: retry.Hedge{Percentile: 0.5}}
		learned := newKit(t, p)
		for range 2 * latency.Samples {
			_, err := holdfast.Do(t.Context(), learned, read, laneSteps(after(50*ms, ok)).call)
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		for _, tc := range []struct {
			k     *holdfast.Kit
			retry *retry.Policy
			hits  int
			took  time.Duration
		}{
			{plain, fixed, 2, 3 * ms},
			{plain, p.Retry, 2, 10 * ms}, // nothing is known
			{learned, fixed, 2, 3 * ms},
			{learned, retry.Off(), 1, 90 * ms},
		} {
			begin, l := time.Now(), laneSteps(after(90*ms, ok), ok)
			_, err := holdfast.Do(holdfast.WithOverride(t.Context(), holdfast.Override{Retry: tc.retry}), tc.k, read, l.call)
			require.NoError(t, err)
			require.Equal(t, tc.hits, l.hits)
			require.Equal(t, tc.took, time.Since(begin))
		}
	})
}
