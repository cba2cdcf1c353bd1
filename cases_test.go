package holdfast_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// D018: 40 workers against 30 s of silence. The breaker knows after about one
// limit, nobody hangs, and the recovery is noticed with the next probe.
func TestD018_ASilentDependencyHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = retry.Off()
		p.Breaker.CooldownFactor = 1 // the last probe of the silence is followed by no longer one
		p.Timeout = &timeout.Limits{Attempt: 500 * time.Millisecond}
		k := newKit(t, p)
		began := time.Now()
		quiet := func() bool { return time.Since(began) < 30*time.Second }
		var mu sync.Mutex
		var took []time.Duration
		var hits int
		var opened, refused, healed time.Duration
		worker := func() {
			for time.Since(began) < 32*time.Second {
				start := time.Now()
				_, err := holdfast.Do(t.Context(), k, read, func(ctx context.Context) (int, error) {
					mu.Lock()
					hits++
					mu.Unlock()
					if quiet() {
						<-ctx.Done()
					}
					return 0, ctx.Err()
				})
				mu.Lock()
				took = append(took, time.Since(start))
				switch {
				case errors.Is(err, breaker.ErrOpen):
					if opened == 0 {
						opened = time.Since(began)
					}
					refused = max(refused, time.Since(start))
				case err == nil && healed == 0:
					healed = time.Since(began)
				}
				mu.Unlock()
				time.Sleep(10 * time.Millisecond) // the caller's own work
			}
		}
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(worker)
		}
		time.Sleep(600 * time.Millisecond)
		mu.Lock()
		require.LessOrEqual(t, hits, 15, "what the bulkhead holds, and the least number to judge by")
		mu.Unlock()
		wg.Wait()
		slices.Sort(took)
		require.Positive(t, opened, "it has opened")
		require.LessOrEqual(t, opened, 600*time.Millisecond)
		require.Zero(t, refused, "a refusal takes no time")
		require.Less(t, took[len(took)*99/100], 700*time.Millisecond)
		require.GreaterOrEqual(t, healed, 30*time.Second, "it has closed")
		require.LessOrEqual(t, healed-30*time.Second, 1600*time.Millisecond, "a cooldown and a probe")
	})
}

// D046: the hook is called for a repeat that really starts, and for no other.
func TestD046_TheHookTellsOfRealRepeats(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []func(context.Context) error
		want  int
	}{
		"nothing to repeat":      {[]func(context.Context) error{func(context.Context) error { return context.Canceled }}, 0},
		"good at the third":      {[]func(context.Context) error{down, down, ok}, 2},
		"never good":             {[]func(context.Context) error{down}, 2},
		"good at once":           {[]func(context.Context) error{ok}, 0},
		"the breaker in between": {[]func(context.Context) error{down, down, down, down, down}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []holdfast.Retry
				k, err := holdfast.New(holdfast.Config{Default: quick(), Hooks: holdfast.Hooks{
					Retry: func(ctx context.Context, r holdfast.Retry) {
						require.NoError(t, ctx.Err())
						seen = append(seen, r)
					},
				}})
				require.NoError(t, err)
				_, _ = do(t.Context(), k, read, answers(tc.steps...))
				require.Len(t, seen, tc.want)
				for i, r := range seen {
					require.Equal(t, i+2, r.Attempt)
					require.Equal(t, read, r.Info)
					require.ErrorIs(t, r.After.Err, errDown)
					require.Equal(t, 10*time.Millisecond, r.Delay)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // cancelled, or refused, before it starts
		calls := 0
		p := quick()
		p.Retry.Backoff.Base = time.Second / 2 // half a cooldown
		k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{Retry: func(context.Context, holdfast.Retry) { calls++ }}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err = do(ctx, k, read, answers(down))
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, calls)
		go func() { _, _ = do(t.Context(), k, read, answers(down)) }()
		synctest.Wait()
		open(t, k)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Zero(t, calls)
	})
}

// D054: 0 is no limit of its kind.
func TestD054_ZeroIsNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := after(50*time.Millisecond, ok)
		for name, tc := range map[string]struct {
			policy holdfast.Policy
			before func(*testing.T, *holdfast.Kit)
		}{
			"no limits":        {policy: holdfast.Policy{Timeout: &timeout.Limits{}}},
			"no attempt limit": {policy: holdfast.Policy{Timeout: &timeout.Limits{Total: time.Minute}}},
			"no total":         {policy: holdfast.Policy{Timeout: &timeout.Limits{Attempt: time.Second}}},
			"no wait limit": {
				holdfast.Policy{Timeout: &timeout.Limits{}, Bulkhead: &bulkhead.Config{Limit: 1, Queue: 1}}, occupy(time.Hour),
			},
			"no probe limit": {
				holdfast.Policy{Timeout: &timeout.Limits{}, Breaker: &breaker.Config{Consecutive: 5, Cooldown: time.Second}},
				func(t *testing.T, k *holdfast.Kit) { open(t, k); time.Sleep(2 * time.Second) },
			},
		} {
			k := newKit(t, tc.policy)
			if tc.before != nil {
				tc.before(t, k)
			}
			_, err := do(t.Context(), k, read, answers(slow))
			require.NoError(t, err, name)
		}
	})
}

// D057, K2: no permit is held during a back-off.
func TestD057_TheBackOffHoldsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		p.Retry.Backoff.Base = time.Second
		k := newKit(t, p)
		var err error
		go func() { _, err = do(t.Context(), k, read, answers(down, ok)) }()
		time.Sleep(50 * time.Millisecond)
		start := time.Now()
		_, other := do(t.Context(), k, read, answers(ok))
		require.NoError(t, other)
		require.Zero(t, time.Since(start))
		time.Sleep(time.Second)
		synctest.Wait()
		require.NoError(t, err)
	})
}
