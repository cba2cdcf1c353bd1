package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Breakers and bulkheads are per target, or per method of a target.
func TestScopesKeepTargetsAndMethodsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		k := newKit(t, p)
		open(t, k)
		_, err := do(t.Context(), k, call.Info{Target: "another"}, answers(ok))
		require.NoError(t, err)

		p.Breaker.Scope = breaker.PerMethod
		k = newKit(t, p)
		open(t, k) // by way of "insert"
		_, err = do(t.Context(), k, call.Info{Target: "db", Method: "insert"}, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen)
		_, err = do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)

		// A resource is no part of these keys, and does not mix the methods up.
		ctx := holdfast.WithResource(t.Context(), "r")
		_, err = do(ctx, k, call.Info{Target: "db", Method: "insert"}, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen)
		_, err = do(ctx, k, read, answers(ok))
		require.NoError(t, err)
	})
}

// B14: of two levels the part's is asked first and then the target's; a part that
// is down does not close off the others, a target that is down does.
func TestB14_TwoLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = retry.Off()
		p.Breaker.Scope = breaker.TwoLevel
		p.Breaker.Window.Calls = 20
		p.Breaker.Cooldown = time.Second
		k := newKit(t, p)
		use := func(model string, s *script) error {
			ctx := holdfast.WithResource(t.Context(), model)
			_, err := do(ctx, k, call.Info{Target: "channel", Method: "complete"}, s)
			return err
		}
		for range 5 { // so that five failures of ten are half of the target's
			require.NoError(t, use("large", answers(ok)))
		}
		for range 4 {
			require.ErrorIs(t, use("small", answers(down)), errDown)
		}
		s := answers(down)
		require.ErrorIs(t, use("small", s), errDown)
		require.ErrorContains(t, use("small", s), "channel|small is open")
		require.Equal(t, 1, s.hits)
		require.ErrorContains(t, use("large", answers(ok)), "breaker: channel is open", "five of ten: the target is closed off too")

		time.Sleep(time.Second)
		require.NoError(t, use("large", answers(ok)), "the target's probe")
		require.ErrorIs(t, use("small", answers(down)), errDown, "the part's probe, booked on both")
		require.ErrorContains(t, use("small", s), "channel|small is open")
		require.NoError(t, use("large", answers(ok)))

		// Without a resource the method is the part.
		_, err := do(t.Context(), k, call.Info{Target: "channel", Method: "list"}, answers(down))
		require.ErrorIs(t, err, errDown)
		require.NoError(t, use("large", answers(ok)))
	})
}

// A resource is not lost with an override, nor an override with a resource.
func TestAResourceAndAnOverrideGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, quick())
		once := holdfast.Override{Retry: retry.Off()}
		for name, ctx := range map[string]func() (string, error){
			"override first": func() (string, error) {
				return do(holdfast.WithResource(holdfast.WithOverride(t.Context(), once), "r"), k, read, answers(down))
			},
			"resource first": func() (string, error) {
				return do(holdfast.WithOverride(holdfast.WithResource(t.Context(), "r"), once), k, read, answers(down))
			},
		} {
			_, err := ctx()
			require.Equal(t, errDown, err, name)
		}
	})
}

// An override's own budget holds where the policy has none.
func TestAnOverriddenRetryHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry, p.Breaker = retry.Off(), breaker.Off()
		ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Retry: &retry.Policy{MaxAttempts: 50, Backoff: retry.NoWait()}})
		s := answers(down)
		_, err := do(ctx, newKit(t, p), read, s)
		require.ErrorIs(t, err, retry.ErrBudget)
		require.Equal(t, 11, s.hits)
	})
}

// K1, K2: what a method keeps for a target outlives a quiet hour and is one under
// its limit, however often it is looked up.
func TestK2_AHeldPermitOutlivesLookUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Timeout = timeout.Off()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		k := newKit(t, p)
		_, _ = do(t.Context(), k, read, answers(func(ctx context.Context) error {
			for range 100 {
				time.Sleep(time.Minute)
				_, err := do(t.Context(), k, read, answers(ok))
				require.ErrorIs(t, err, bulkhead.ErrFull)
			}
			return nil
		}))
		_, err := do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
	})
}
