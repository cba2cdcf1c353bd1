package holdfast_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// T2: the table of who ended an attempt (D052, D032).
func TestT2_WhoEndedTheAttempt(t *testing.T) {
	cause := errors.New("the page was closed")
	for name, tc := range map[string]struct {
		caller             func(context.Context) (context.Context, context.CancelFunc)
		exceeded, deadline bool
		canceled           bool
		hits               int
	}{
		"the kit's limit": {
			func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
			true, true, false, 3,
		},
		"the caller's deadline": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, 50*time.Millisecond, cause)
			},
			false, true, false, 1,
		},
		"the caller's cancellation": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
				return ctx, func() {}
			},
			false, false, true, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := tc.caller(t.Context())
				defer cancel()
				s := answers(silent)
				_, err := do(ctx, newKit(t, quick()), read, s)
				require.Equal(t, tc.exceeded, errors.Is(err, timeout.ErrExceeded))
				require.Equal(t, tc.deadline, errors.Is(err, context.DeadlineExceeded))
				require.Equal(t, tc.canceled, errors.Is(err, context.Canceled))
				require.Equal(t, !tc.exceeded, errors.Is(err, cause))
				require.Equal(t, tc.hits, s.hits)
			})
		})
	}
}

// D016: callers that leave are no failure, whatever the transport makes of it.
func TestD016_CancelledCallsAreNeutral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, quick())
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			time.AfterFunc(20*time.Millisecond, cancel)
			_, err := holdfast.Do(ctx, k, read, func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, errors.New("canceled") // as text only
			})
			require.ErrorIs(t, err, context.Canceled)
		}
		_, err := do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
	})
}

// T1, T3: Attempt bounds each try, Total all of them with their waits.
func TestT3_TotalBoundsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Timeout = &timeout.Limits{Total: 150 * time.Millisecond, Attempt: 100 * time.Millisecond}
		s, start := answers(silent), time.Now()
		_, err := do(t.Context(), newKit(t, p), read, s)
		require.Equal(t, 150*time.Millisecond, time.Since(start))
		require.Equal(t, 2, s.hits)
		require.ErrorContains(t, err, "Total limit of 150ms exceeded")
	})
}

// T5: a context that is done, or too near its end, is refused before the breaker
// is asked: nothing is admitted or charged (D031).
func TestT5_NothingBeginsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Timeout = &timeout.Limits{Floor: 20 * time.Millisecond}
		k, s := newKit(t, p), answers(ok)

		done, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := do(done, k, read, s)
		require.Equal(t, context.Canceled, err)

		near, cancel := context.WithTimeout(t.Context(), 19*time.Millisecond)
		defer cancel()
		_, err = do(near, k, read, s)
		require.ErrorIs(t, err, timeout.ErrFloor)
		require.NoError(t, near.Err())

		open(t, k)
		_, err = do(done, k, read, s)
		require.Equal(t, context.Canceled, err, "the open breaker is not asked")
		require.Zero(t, s.hits)
	})
}

// B7: where no ProbeTimeout is set a probe's limit is that of an attempt, and that
// of its own method.
func TestB7_AProbeIsLimitedAsItsMethodIs(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: 20 * time.Millisecond, 70 * time.Millisecond: 70 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Retry = retry.Off()
			p.Breaker.ProbeTimeout = set
			k, err := holdfast.New(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{
				"fast": {Timeout: &timeout.Limits{Attempt: 20 * time.Millisecond}},
			}})
			require.NoError(t, err)
			open(t, k)
			time.Sleep(time.Second)
			begin := time.Now()
			_, err = do(t.Context(), k, call.Info{Target: "db", Method: "fast"}, answers(silent))
			require.ErrorIs(t, err, timeout.ErrExceeded)
			require.Equal(t, want, time.Since(begin))
		})
	}
}

// B6: what its caller does to a probe is neutral, also where the deadline has
// passed and its timer has yet to run.
func TestB6_ACallersDeadlineIsNotTheProbesFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, quick())
		open(t, k)
		time.Sleep(time.Second)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err := holdfast.Do(ctx, k, read, func(context.Context) (int, error) {
				time.Sleep(10 * time.Millisecond)
				return 0, errDown // the wire noticed first
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		_, err := do(t.Context(), k, read, answers(ok))
		require.NoError(t, err, "the slot came back each time, and the breaker is not open again")
	})
}

// A deadline that has just passed is the caller's end, and no refusal.
func TestT5_ADeadlineThatHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := deadlineOnly{t.Context(), time.Now()}
		_, err := do(ctx, newKit(t, quick()), read, answers(ok))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, timeout.ErrFloor)
	})
}

// deadlineOnly is a context whose timer has yet to run.
type deadlineOnly struct {
	context.Context
	at time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// H4: a URL in the wire's error stays out of the kit's.
func TestH4_TheLimitsErrorHasNoURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = retry.Off()
		_, err := holdfast.Do(t.Context(), newKit(t, p), read, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, &url.Error{Op: "Get", URL: "http://x/?token=abc", Err: errors.New("gave up")}
		})
		require.EqualError(t, err, "timeout: Attempt limit of 100ms exceeded: gave up")
	})
}

// T2: a deadline is a deadline, whatever cause its owner gave it.
func TestT2_ACauseDoesNotMakeADeadlineACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var classes []call.Class
		p := quick()
		p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result {
			classes = append(classes, res.Class)
			return res
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, context.Canceled)
		defer cancel()
		_, err := do(ctx, newKit(t, p), read, answers(silent))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []call.Class{call.TimedOut}, classes)
	})
}
