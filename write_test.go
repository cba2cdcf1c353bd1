package holdfast_test

import (
	"context"
	"errors"
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

// What a write is told by the kit's own errors: whether it may have taken effect,
// and that nothing was stored for it.
func TestF1_AWritesErrorSaysWhatBecameOfIt(t *testing.T) {
	const notSent, unknown = "; the call was not sent; nothing was stored or pretended",
		"; the outcome is unknown: the call may have taken effect; nothing was stored or pretended"
	write := call.Info{Target: "db", Method: "insert", Safety: call.Idempotent}
	broken := errors.New("broken")
	fails := func(context.Context) (string, error) { return "", broken }
	silent := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	for name, c := range map[string]struct {
		fn    func(context.Context) (string, error)
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		open  bool
		text  string
		is    error
		sent  bool
		plain bool // the error is not the kit's
	}{
		"the circuit is open": {fn: fails, open: true, is: breaker.ErrOpen, text: "breaker: db is forced open" + notSent},
		"an attempt's limit":  {fn: silent, is: timeout.ErrExceeded, sent: true, text: "timeout: Attempt limit of 100ms exceeded: context deadline exceeded" + unknown},
		"the caller's deadline": {fn: silent, is: context.DeadlineExceeded, sent: true, text: "context deadline exceeded" + unknown,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 10*time.Millisecond)
			}},
		"a deadline that has passed": {fn: silent, is: context.DeadlineExceeded, text: "context deadline exceeded" + notSent,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, -1) }},
		"the caller left": {fn: silent, is: context.Canceled, plain: true, text: "context canceled",
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Millisecond, cancel)
				return ctx, cancel
			}},
		"the function's own": {fn: fails, is: broken, plain: true, text: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quick()
				p.Retry = retry.Off()
				k := newKit(t, p)
				_, _ = holdfast.Do(t.Context(), k, write, func(context.Context) (string, error) { return "", nil })
				if c.open {
					for _, b := range k.Breakers() {
						b.ForceOpen("")
					}
				}
				ctx := t.Context()
				if c.ctx != nil {
					bounded, cancel := c.ctx(ctx)
					defer cancel()
					ctx = bounded
				}
				_, err := holdfast.Do(ctx, k, write, c.fn)
				require.EqualError(t, err, c.text)
				require.ErrorIs(t, err, c.is)
				own, ok := errors.AsType[*fallback.WriteError](err)
				require.Equal(t, !c.plain, ok)
				if ok {
					require.Equal(t, c.sent, own.Sent)
					require.Equal(t, c.is != breaker.ErrOpen, own.Timeout())
				}

				read := write
				read.Safety = call.ReadOnly // a read has the bare error
				_, err = holdfast.Do(ctx, k, read, c.fn)
				require.Error(t, err)
				_, ok = errors.AsType[*fallback.WriteError](err)
				require.False(t, ok)
			})
		})
	}
}

// An attempt before the last may have arrived, though the last was not sent: it
// waited for a permit until its caller's deadline.
func TestAWriteThatWasRepeatedMayHaveArrived(t *testing.T) {
	for safety, calls := range map[call.Safety]int{call.Idempotent: 1, call.Unsafe: 0} {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1}
			k := newKit(t, p)
			other := func() {
				_, _ = holdfast.Do(t.Context(), k, call.Info{Target: "db"}, func(context.Context) (string, error) {
					time.Sleep(90 * time.Millisecond)
					return "", nil
				})
			}
			if safety == call.Unsafe {
				go other()
				synctest.Wait()
			} else {
				time.AfterFunc(105*time.Millisecond, other) // during the back-off
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(calls)*100*time.Millisecond+50*time.Millisecond)
			defer cancel()
			n := 0
			_, err := holdfast.Do(ctx, k, call.Info{Target: "db", Method: "insert", Safety: safety}, func(ctx context.Context) (string, error) {
				n++
				<-ctx.Done()
				return "", ctx.Err()
			})
			require.Equal(t, calls, n)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			own, ok := errors.AsType[*fallback.WriteError](err)
			require.True(t, ok, err)
			require.Equal(t, calls == 1, own.Sent)
			time.Sleep(time.Second)
		})
	}
}

// F1, R10: where a hedge was sent a write may have arrived, although the attempt whose
// failure the call ends with never left.
func TestF1_AWriteWhoseHedgeWasSentMayHaveArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := newKit(t, hedging()).Bind(namesAsTheyAre)
		require.NoError(t, err)
		var c holdfast.Call
		ctx, err := c.Begin(t.Context(), b.Table().Default(), call.Info{Target: "db", Safety: call.Idempotent}, holdfast.Terms{})
		require.NoError(t, err)
		_, err = c.RunHedged(ctx, func(n int) (func(context.Context, int) call.Result, func()) {
			return func(context.Context, int) call.Result {
				time.Sleep(50 * time.Millisecond)
				return call.Result{Class: call.TimedOut, Err: &timeout.Error{Limit: "Attempt"}, NotSent: n == 1}
			}, func() {}
		})
		write, ok := errors.AsType[*fallback.WriteError](err)
		require.True(t, ok)
		require.Equal(t, 2, c.CallEnd(err).Attempts)
		require.True(t, write.Sent)
	})
}
