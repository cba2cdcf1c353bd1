package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/timeout"
)

// R10: losers are cancelled at once and are neutral. With ten of them booked as
// failures the breaker would open.
func TestR10_LosersAreCancelledAndNeutral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Breaker = &breaker.Config{Consecutive: 3}
		k := newKit(t, p)
		for i := range 40 {
			l := laneSteps(silent, ok)
			if i%2 == 1 {
				l = laneSteps(after(20*ms, ok), silent)
			}
			begin := time.Now()
			got, err := holdfast.Do(t.Context(), k, read, l.call)
			require.NoError(t, err)
			require.Equal(t, 2-i%2, got)
			require.Equal(t, []time.Duration{10 * ms, 20 * ms}[i%2], time.Since(begin))
			require.Len(t, l.ends, 2)
			time.Sleep(time.Second)
		}
	})
	synctest.Test(t, func(t *testing.T) { // one that had failed by itself is a failure
		p := hedging()
		p.Breaker = &breaker.Config{Window: breaker.Window{Calls: 10}, Failures: 4}
		k := newKit(t, p)
		for range 4 {
			_, err := holdfast.Do(t.Context(), k, read, laneSteps(after(15*ms, down), after(20*ms, ok)).call)
			require.NoError(t, err)
		}
		_, err := holdfast.Do(t.Context(), k, read, laneSteps(ok).call)
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// D052, T2: who ended a hedged call.
func TestD052_WhoEndedAHedgedCall(t *testing.T) {
	cause := errors.New("the page was closed")
	for name, tc := range map[string]struct {
		caller             func(context.Context) (context.Context, context.CancelFunc)
		exceeded, deadline bool
		canceled           bool
		took               time.Duration
	}{
		"the kit's limit": {
			func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
			true, true, false, 110 * ms,
		},
		"the caller's deadline": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, 50*ms, cause)
			},
			false, true, false, 50 * ms,
		},
		"the caller's cancellation": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(50*ms, func() { cancel(cause) })
				return ctx, func() { cancel(nil) }
			},
			false, false, true, 50 * ms,
		},
	} {
		for which, first := range map[string]func(context.Context) error{"all silent": silent, "the first has failed": after(20*ms, down)} {
			if name == "the kit's limit" && which != "all silent" {
				continue // then that is the error
			}
			t.Run(name+", "+which, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := tc.caller(t.Context())
					defer cancel()
					l, begin := laneSteps(first, silent), time.Now()
					_, err := holdfast.Do(ctx, newKit(t, hedging()), read, l.call)
					require.Equal(t, tc.took, time.Since(begin))
					require.Equal(t, 2, l.hits)
					require.Equal(t, tc.exceeded, errors.Is(err, timeout.ErrExceeded))
					require.Equal(t, tc.deadline, errors.Is(err, context.DeadlineExceeded))
					require.Equal(t, tc.canceled, errors.Is(err, context.Canceled))
					require.Equal(t, name != "the kit's limit", errors.Is(err, cause))
				})
			})
		}
	}
}

// B1: a panic or a Goexit in a lane is a failure, ends the others, and goes on
// where the call was made, after everything has been given back.
func TestB1_APanicInALaneGoesOn(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func()
		want any
	}{
		"panic":  {func() { panic("a bug") }, "a bug"},
		"Goexit": {runtime.Goexit, nil},
	} {
		for which, hits := range map[string]int{"at once": 1, "beside a hedge": 2, "in the hedge": 2} {
			t.Run(name+" "+which, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := hedging()
					p.Breaker = &breaker.Config{Consecutive: 2}
					p.Bulkhead = &bulkhead.Config{Limit: 2}
					k := newKit(t, p)
					for range 2 {
						steps := map[string][]func(context.Context) error{
							"at once":        {func(context.Context) error { tc.end(); return nil }},
							"beside a hedge": {after(20*ms, func(context.Context) error { tc.end(); return nil }), silent},
							"in the hedge":   {silent, func(context.Context) error { tc.end(); return nil }},
						}[which]
						l := laneSteps(steps...)
						var got any
						returned := false
						over := make(chan struct{})
						go func() {
							defer close(over)
							defer func() { got = recover() }()
							_, _ = holdfast.Do(t.Context(), k, read, l.call)
							returned = true
						}()
						<-over
						require.False(t, returned)
						require.Equal(t, tc.want, got)
						require.Equal(t, hits, l.hits)
						synctest.Wait()
					}
					_, err := holdfast.Do(t.Context(), k, read, laneSteps(ok).call)
					require.ErrorIs(t, err, breaker.ErrOpen, "two failures were booked")
				})
			})
		}
	}
}

// A value or an error of a loser's never shows: each attempt has its own.
func TestR10_EachAttemptHasItsOwnValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, hedging())
		for range 50 {
			// Both answer at the very same moment.
			l := laneSteps(after(20*ms, ok), after(10*ms, ok))
			got, err := holdfast.Do(t.Context(), k, read, func(ctx context.Context) (string, error) {
				n, err := l.call(ctx)
				return fmt.Sprint("row ", n), err
			})
			require.NoError(t, err)
			require.Contains(t, []string{"row 1", "row 2"}, got)
			time.Sleep(time.Second)
		}
	})
}

// T1, D047: every attempt's context has been ended, the winner's too, and a
// caller's context that lives on keeps nothing of them.
func TestT1_NoContextOfARaceIsLeft(t *testing.T) {
	for name, limits := range map[string]*timeout.Limits{"with a limit": {Attempt: time.Second}, "without one": timeout.Off()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := hedging()
				p.Timeout = limits
				k := newKit(t, p)
				for _, steps := range [][]func(context.Context) error{{ok}, {silent, ok}, {after(20*ms, ok), silent}, {down}} {
					var mu sync.Mutex
					var made []context.Context
					l := laneSteps(steps...)
					_, _ = holdfast.Do(t.Context(), k, read, func(ctx context.Context) (int, error) {
						mu.Lock()
						made = append(made, ctx)
						mu.Unlock()
						return l.call(ctx)
					})
					require.Len(t, made, l.hits)
					for _, ctx := range made {
						require.Error(t, ctx.Err())
					}
				}
			})
		})
	}
}
