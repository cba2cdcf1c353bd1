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
		var seen []string // the resource of each attempt
		p := quick()
		p.Classify = func(_ context.Context, info call.Info, res call.Result) call.Result {
			seen = append(seen, info.Resource)
			return res
		}
		k := newKit(t, p)
		once := holdfast.Override{Retry: retry.Off()}
		for name, ctx := range map[string]context.Context{
			"override first": holdfast.WithResource(holdfast.WithOverride(t.Context(), once), "r"),
			"resource first": holdfast.WithOverride(holdfast.WithResource(t.Context(), "r"), once),
		} {
			seen = nil
			_, err := do(ctx, k, read, answers(down))
			require.Equal(t, errDown, err, name)
			require.Equal(t, []string{"r"}, seen, name)
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

// A bulkhead of two levels: a method that hangs takes its own share, and all
// together not more than the target's.
func TestK1_ABulkheadOfTwoLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry, p.Timeout = retry.Off(), timeout.Off()
		p.Bulkhead = &bulkhead.Config{Limit: 3, MethodLimit: 2, Scope: bulkhead.TwoLevel}
		k, release := newKit(t, p), make(chan struct{})
		hold := func(method string) {
			go func() {
				_, _ = do(t.Context(), k, call.Info{Target: "db", Method: method}, answers(func(context.Context) error { <-release; return nil }))
			}()
			synctest.Wait()
		}
		try := func(method string) error {
			_, err := do(t.Context(), k, call.Info{Target: "db", Method: method}, answers(ok))
			return err
		}
		hold("slow")
		hold("slow")
		require.ErrorIs(t, try("slow"), bulkhead.ErrFull)
		require.ErrorContains(t, try("slow"), `"db|slow"`)
		require.NoError(t, try("fast"))
		hold("fast")
		require.ErrorContains(t, try("fast"), `"db"`, "three of three")
		require.ErrorContains(t, try("other"), `"db"`)
		close(release)
		synctest.Wait()
		for _, method := range []string{"slow", "fast", "other"} {
			require.NoError(t, try(method))
		}
	})
}

// B11: callers who wait in the bulkhead's queue do not hide those who are stuck.
func TestB11_AQueueDoesNotHideASilentDependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry, p.Timeout = retry.Off(), &timeout.Limits{Attempt: time.Minute}
		p.Breaker = &breaker.Config{Consecutive: 1000, Stall: breaker.Stall{After: 200 * time.Millisecond, Calls: 10}}
		p.Bulkhead = &bulkhead.Config{Limit: 10, Queue: 100}
		k := newKit(t, p)
		ctx, leave := context.WithCancel(t.Context())
		for _, n := range []int{10, 100} { // those who are stuck, and who came later
			for range n {
				go func() { _, _ = do(ctx, k, read, answers(silent)) }()
			}
			time.Sleep(150 * time.Millisecond)
		}
		_, err := do(t.Context(), k, read, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen)
		leave()
		synctest.Wait()
	})
}
