package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// R10: what a race learns of the attempt that a hedge overtook it learns without
// looking at what that attempt still writes. In real time, for the race detector.
func TestR10_LearningFromALoserIsNoRace(t *testing.T) {
	p := quick()
	p.Retry.Budget = retry.NoBudget()
	p.Retry.Hedge = retry.Hedge{Percentile: 0.5, Delay: time.Millisecond}
	k, hedged := newKit(t, p), 0
	for range 100 {
		var n atomic.Int32
		_, _ = holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) {
			time.Sleep(time.Duration(2-min(n.Add(1), 2)+1) * time.Millisecond) // both end together
			return 1, nil
		})
		if n.Load() == 2 {
			hedged++
		}
	}
	require.Positive(t, hedged)
}

// R10: errors are held back while others run, also those that forbid a repeat;
// such an answer stops further hedges.
func TestR10_AHedgeThatForbidsARepeatDoesNotWin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("overloaded: do not repeat")
		p := hedging()
		p.Retry.Hedge.Extra = 2
		p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result {
			if errors.Is(res.Err, over) {
				res.Class, res.NoRetry = call.Unavailable, true
			}
			return res
		}
		s := answers(after(50*time.Millisecond, ok), func(context.Context) error { return over })
		_, err := do(t.Context(), newKit(t, p), read, s)
		require.NoError(t, err)
		require.Equal(t, 2, s.hits)
	})
}

// R10, D083: a hedge that could only be a probe is not sent, and the breaker does
// not hear of it.
func TestD083_AHedgeLeavesAnOpenBreakerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var moves []breaker.Transition
		p := quick()
		p.Timeout = &timeout.Limits{Attempt: 20 * time.Second}
		p.Retry.Hedge = retry.Hedge{Delay: 3 * time.Second}
		p.Breaker.Hooks.Transition = func(m breaker.Transition) {
			mu.Lock()
			defer mu.Unlock()
			moves = append(moves, m)
		}
		p.Breaker.Hooks.ProbeEnded = func(breaker.ProbeEnd) { t.Error("there was no probe") }
		k := newKit(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		s := answers(silent)
		go func() { _, _ = do(ctx, k, read, s) }()
		synctest.Wait()
		open(t, k)
		time.Sleep(5 * time.Second) // the cooldown of a second is over long ago
		cancel()
		synctest.Wait()
		require.Equal(t, 1, s.hits)
		require.Len(t, moves, 1, "it opened")
	})
}

// B6: a probe is failed by the dependency or by its own limit, not by a call that
// has less time for it: by an override, or for the attempts before.
func TestB6_AHastyCallDoesNotFailAProbe(t *testing.T) {
	slow := after(20*time.Millisecond, ok)
	for name, use := range map[string]func(*testing.T, *holdfast.Kit){
		"override of Total": func(t *testing.T, k *holdfast.Kit) {
			ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Timeout: &timeout.Limits{Total: 5 * time.Millisecond}})
			_, err := do(ctx, k, read, answers(slow))
			require.ErrorIs(t, err, timeout.ErrExceeded)
		},
		"override of Attempt": func(t *testing.T, k *holdfast.Kit) {
			ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Timeout: &timeout.Limits{Attempt: 5 * time.Millisecond}})
			_, err := do(ctx, k, read, answers(slow))
			require.ErrorIs(t, err, timeout.ErrExceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, quick())
				open(t, k)
				time.Sleep(time.Second)
				use(t, k)
				_, err := do(t.Context(), k, read, answers(slow))
				require.NoError(t, err, "the slot came back, and the probe after it closes")
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // the policy's own limit is the probe's
		p := quick()
		p.Retry, p.Timeout = retry.Off(), &timeout.Limits{Total: 10 * time.Millisecond}
		k := newKit(t, p)
		open(t, k)
		time.Sleep(time.Second)
		_, err := do(t.Context(), k, read, answers(slow))
		require.ErrorIs(t, err, timeout.ErrExceeded)
		_, err = do(t.Context(), k, read, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// R6: the token of a repeat that is not made comes back.
func TestR6_ATokenNotUsedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Breaker = breaker.Off()
		p.Retry.Budget = retry.Budget{Initial: 1, PerSecond: 1e-6}
		p.Retry.Backoff.Base = time.Second
		k := newKit(t, p)
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			_, err := do(ctx, k, read, answers(down))
			require.ErrorIs(t, err, context.Canceled)
		}
		s := answers(down, ok)
		_, err := do(t.Context(), k, read, s)
		require.NoError(t, err)
	})
}

// Names of parts do not run into those of other targets.
func TestNamesOfPartsAreDistinct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = retry.Off()
		p.Breaker.Scope = breaker.PerMethod
		k := newKit(t, p)
		for range 5 {
			_, _ = do(t.Context(), k, call.Info{Target: "a", Method: "b|c"}, answers(down))
		}
		_, err := do(t.Context(), k, call.Info{Target: "a|b", Method: "c"}, answers(ok))
		require.NoError(t, err)
	})
}

// Do heeds the resource in its Info; that of the context goes before.
func TestDoHeedsTheResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		p := quick()
		p.Classify = func(_ context.Context, info call.Info, res call.Result) call.Result {
			seen = append(seen, info.Resource)
			return res
		}
		k := newKit(t, p)
		info := call.Info{Target: "channel", Resource: "small"}
		_, _ = do(t.Context(), k, info, answers(ok))
		_, _ = do(holdfast.WithResource(t.Context(), "large"), k, info, answers(ok))
		require.Equal(t, []string{"small", "large"}, seen)
	})
}

// An absurd number of hedges is refused.
func TestHedgesAreBounded(t *testing.T) {
	_, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{Retry: &retry.Policy{
		MaxAttempts: retry.Unlimited, Hedge: retry.Hedge{Delay: time.Second, Extra: 101},
	}}})
	require.ErrorContains(t, err, "Default.Retry.Hedge.Extra = 101: must be at most 100")
}
