package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

var errDown = errors.New("the dependency is down")

// read is a call that may be repeated and answered by a fallback.
var read = call.Info{Target: "db", Method: "select", Safety: call.ReadOnly}

func newKit(t *testing.T, p holdfast.Policy) *holdfast.Kit {
	t.Helper()
	k, err := holdfast.New(holdfast.Config{Default: p})
	require.NoError(t, err)
	return k
}

// quick is a policy whose breaker opens after five failures in a row for a
// second, with three attempts and a wait of 10 ms between them.
func quick() holdfast.Policy {
	return holdfast.Policy{
		Retry:    &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Factor: 1, Jitter: retry.NoJitter}},
		Breaker:  &breaker.Config{Window: breaker.Window{Calls: 10}, MinCalls: 5, FailureRate: 0.5, Cooldown: time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1},
		Timeout:  &timeout.Limits{Attempt: 100 * time.Millisecond},
		Bulkhead: &bulkhead.Config{Limit: 10},
	}
}

// script is a dependency that answers each attempt by the next of its steps, the
// last one for ever.
type script struct {
	mu    sync.Mutex
	hits  int
	steps []func(context.Context) error
}

func answers(steps ...func(context.Context) error) *script { return &script{steps: steps} }

func (s *script) call(ctx context.Context) (string, error) {
	s.mu.Lock()
	step := s.steps[min(s.hits, len(s.steps)-1)]
	s.hits++
	s.mu.Unlock()
	if err := step(ctx); err != nil {
		return "", err
	}
	return "row", nil
}

func ok(context.Context) error   { return nil }
func down(context.Context) error { return errDown }
func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func do(ctx context.Context, k *holdfast.Kit, info call.Info, s *script) (string, error) {
	return holdfast.Do(ctx, k, info, s.call)
}

// open opens the breaker of read's target. It may run on any goroutine.
func open(t *testing.T, k *holdfast.Kit) {
	t.Helper()
	unsafe := call.Info{Target: read.Target, Method: "insert"}
	for range 5 {
		_, err := do(t.Context(), k, unsafe, answers(down))
		if errors.Is(err, breaker.ErrOpen) {
			return // what the test did before counts too
		}
		if !errors.Is(err, errDown) {
			t.Errorf("while it is to be opened: %v", err)
		}
	}
}

// The order is Fallback(Retry(CircuitBreaker(Timeout(Bulkhead(call))))): each
// layer is seen to stand inside the one before it.
func TestTheOrderOfTheFormula(t *testing.T) {
	t.Run("the fallback is outside retry: it sees the last of three attempts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			var seen []fallback.Failure
			p.Fallback = &fallback.Policy{Answer: func(_ context.Context, f fallback.Failure) (any, error) {
				seen = append(seen, f)
				return "stale", nil
			}}
			got, err := do(t.Context(), newKit(t, p), read, answers(down))
			require.NoError(t, err)
			require.Equal(t, "stale", got)
			require.Len(t, seen, 1)
			require.Equal(t, 3, seen[0].Attempts)
			require.ErrorIs(t, seen[0].Err, errDown)
		})
	})
	t.Run("retry is outside the breaker: each attempt is booked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k, s := newKit(t, quick()), answers(down)
			for range 2 { // 3 attempts, then 2 until the breaker is open
				_, err := do(t.Context(), k, read, s)
				require.ErrorIs(t, err, errDown)
			}
			require.Equal(t, 5, s.hits)
			_, err := do(t.Context(), k, read, s)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Equal(t, 5, s.hits)
		})
	})
	t.Run("the breaker is outside the timeout: a limit that passes is a failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // D017
			p := quick()
			p.Retry = retry.Off()
			k, s := newKit(t, p), answers(silent)
			for range 5 {
				_, err := do(t.Context(), k, read, s)
				require.ErrorIs(t, err, timeout.ErrExceeded)
			}
			_, err := do(t.Context(), k, read, s)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Equal(t, 5, s.hits)
		})
	})
	t.Run("the breaker is outside the bulkhead: an open circuit takes no permit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Retry = retry.Off()
			p.Bulkhead = &bulkhead.Config{Limit: 1}
			k := newKit(t, p)
			occupy(time.Millisecond)(t, k)
			for _, b := range k.Breakers() {
				b.ForceOpen("")
			}
			_, err := do(t.Context(), k, read, answers(ok))
			require.ErrorIs(t, err, breaker.ErrOpen, "and asks for none")
			require.NotErrorIs(t, err, bulkhead.ErrFull)
			time.Sleep(time.Millisecond)
			synctest.Wait()
			_, err = do(t.Context(), k, read, answers(ok))
			require.ErrorIs(t, err, breaker.ErrOpen)
			for _, b := range k.Bulkheads() {
				require.Zero(t, b.InUse())
			}
		})
	})
	t.Run("the timeout is outside the bulkhead: the limit bounds the queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Retry = retry.Off()
			p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1}
			k := newKit(t, p)
			hold := make(chan struct{})
			go func() {
				_, _ = holdfast.Do(context.Background(), k, read, func(context.Context) (int, error) { <-hold; return 0, nil })
			}()
			synctest.Wait()
			start := time.Now()
			s := answers(ok)
			_, err := do(t.Context(), k, read, s)
			require.Equal(t, 100*time.Millisecond, time.Since(start))
			// K3: cut short by the attempt limit it is a refusal.
			require.ErrorIs(t, err, bulkhead.ErrFull)
			require.Zero(t, s.hits)
			close(hold)
			synctest.Wait()
		})
	})
}

// R2: an open circuit is never repeated, and neither are the others that no
// repeat can mend (D028).
func TestR2_WhatIsNeverRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		info call.Info
		step func(context.Context) error
		hits int
	}{
		"a read that failed is":               {read, down, 3},
		"an idempotent call that failed is":   {call.Info{Target: "db", Safety: call.Idempotent}, down, 3},
		"an unsafe call":                      {call.Info{Target: "db", Safety: call.Unsafe}, down, 1},
		"a call of which nothing is declared": {call.Info{Target: "db"}, down, 1},
		"a refusal of another kit's":          {read, func(context.Context) error { return breaker.ErrOpen }, 1},
		"a cancelled one":                     {read, func(context.Context) error { return context.Canceled }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := answers(tc.step)
				_, err := do(t.Context(), newKit(t, quick()), tc.info, s)
				require.Error(t, err)
				require.Equal(t, tc.hits, s.hits)
			})
		})
	}
}

func TestD028_AnOpenCircuitIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, quick())
		open(t, k)
		s, start := answers(ok), time.Now()
		_, err := do(t.Context(), k, read, s)
		require.Zero(t, time.Since(start))
		require.Zero(t, s.hits)
		var refusal *breaker.OpenError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, time.Second, refusal.RetryAfter())
	})
}

// R5, R12: no time for another attempt ends the call now, with the last failure
// and the reason, while the context is still alive (D030).
func TestR5_NoTimeEndsTheCallNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 5 * time.Second, Factor: 1, Jitter: retry.NoJitter}}
		k := newKit(t, p)
		for _, bounded := range []bool{true, false} {
			ctx, info := t.Context(), read
			if bounded {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			} else {
				ctx = holdfast.WithOverride(ctx, holdfast.Override{Timeout: &timeout.Limits{Total: 300 * time.Millisecond}})
			}
			s := answers(func(context.Context) error { time.Sleep(10 * time.Millisecond); return errDown })
			start := time.Now()
			_, err := do(ctx, k, info, s)
			require.Equal(t, 10*time.Millisecond, time.Since(start))
			require.Equal(t, 1, s.hits)
			require.NoError(t, ctx.Err())
			require.ErrorIs(t, err, errDown)
			require.ErrorIs(t, err, retry.ErrNoTime)
			var stopped *retry.StoppedError
			require.ErrorAs(t, err, &stopped)
			require.Equal(t, 1, stopped.Attempts)
		}
	})
}

// R7, R12: a call never ends worse than its last real result.
func TestR7_ARefusedRepeatLeavesTheLastResult(t *testing.T) {
	t.Run("the breaker opened in between", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Breaker.Consecutive = 2
			s := answers(down)
			start := time.Now()
			_, err := do(t.Context(), newKit(t, p), read, s)
			require.Equal(t, 2, s.hits)
			require.Equal(t, 10*time.Millisecond, time.Since(start), "no wait for an attempt that cannot be made")
			require.ErrorIs(t, err, errDown)
			require.ErrorIs(t, err, breaker.ErrOpen)
		})
	})
	t.Run("the breaker opened during the wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Retry = &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second / 2, Factor: 1, Jitter: retry.NoJitter}}
			k, s := newKit(t, p), answers(down)
			var err error
			go func() { _, err = do(t.Context(), k, read, s) }()
			synctest.Wait()
			open(t, k)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, 1, s.hits)
			require.ErrorIs(t, err, errDown)
			require.ErrorIs(t, err, breaker.ErrOpen)
		})
	})
	t.Run("the bulkhead is full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Timeout = timeout.Off()
			p.Bulkhead = &bulkhead.Config{Limit: 1}
			k, hold := newKit(t, p), make(chan struct{})
			s := answers(down)
			var err error
			go func() { _, err = do(t.Context(), k, read, s) }()
			synctest.Wait() // the first attempt failed: its permit is free (K2, D057)
			go func() {
				_, _ = holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) { <-hold; return 0, nil })
			}()
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			require.Equal(t, 1, s.hits)
			require.ErrorIs(t, err, errDown)
			require.ErrorIs(t, err, bulkhead.ErrFull)
			close(hold)
			synctest.Wait()
		})
	})
}

// R6: with the budget spent the original failure comes back, marked as local, and the
// calls of another target have theirs (D043).
func TestR6_ASpentBudgetReturnsTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Breaker = breaker.Off()
		k := newKit(t, p)
		denied := 0
		for range 20 {
			_, err := do(t.Context(), k, read, answers(down))
			require.ErrorIs(t, err, errDown)
			if errors.Is(err, retry.ErrBudget) {
				denied++
			}
		}
		require.Positive(t, denied)
		time.Sleep(time.Second) // earns ten
		_, err := do(t.Context(), k, read, answers(down))
		require.NotErrorIs(t, err, retry.ErrBudget)

		other := read
		other.Target = "another"
		_, err = do(t.Context(), k, other, answers(down))
		require.NotErrorIs(t, err, retry.ErrBudget)
	})
}

// A verdict without a class is never a success.
func TestAnInvalidClassIsAServerFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result { res.Class = 0; return res }
		k := newKit(t, p)
		for range 5 {
			_, _ = do(t.Context(), k, call.Info{Target: "db"}, answers(ok))
		}
		_, err := do(t.Context(), k, read, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// D022: what the kit itself turns away says nothing about the dependency.
func TestD022_RefusalsAreNotBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Timeout = timeout.Off()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		k, hold := newKit(t, p), make(chan struct{})
		go func() {
			_, _ = holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) { <-hold; return 0, nil })
		}()
		synctest.Wait()
		for range 500 {
			_, err := do(t.Context(), k, read, answers(ok))
			require.ErrorIs(t, err, bulkhead.ErrFull)
			require.NotErrorIs(t, err, breaker.ErrOpen)
		}
		close(hold)
		synctest.Wait()
		_, err := do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
	})
}

// A verdict that a classifier makes anew does not lose the error, and a fallback
// without an answer does not hide it.
func TestTheErrorIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Classify = func(context.Context, call.Info, call.Result) call.Result {
			return call.Result{Class: call.ServerFault}
		}
		_, err := do(t.Context(), newKit(t, p), read, answers(down))
		require.ErrorIs(t, err, errDown)

		p = quick()
		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return nil, nil }}
		_, err = do(t.Context(), newKit(t, p), read, answers(down))
		require.ErrorIs(t, err, errDown)
	})
}

// What a policy calls OK is one for every layer, and still the error that it was for
// the caller.
func TestAnErrorThatIsCalledOKComesBack(t *testing.T) {
	odd := errors.New("odd")
	k := newKit(t, holdfast.Policy{
		Breaker: &breaker.Config{Consecutive: 1},
		Classify: func(_ context.Context, _ call.Info, res call.Result) call.Result {
			return call.Result{Class: call.OK}
		},
	})
	for range 3 {
		n := 0
		_, err := holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) { n++; return 1, odd })
		require.Equal(t, odd, err)
		require.Equal(t, 1, n)
	}
}
