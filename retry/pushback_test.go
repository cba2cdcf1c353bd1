package retry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// D040, R4: an exact pause is the wait, and the back-off begins anew after it.
func TestD040_AnExactPause(t *testing.T) {
	p := retry.Policy{MaxAttempts: 9, Backoff: retry.Backoff{Base: time.Second, Cap: time.Minute, Jitter: retry.NoJitter}, Budget: retry.NoBudget(), RetryAfterCap: time.Minute}
	next := func(attempt, before int, pause time.Duration, exact bool) retry.Decision {
		return p.Next(retry.Input{
			Attempt: attempt, Before: before, Safety: call.ReadOnly, Left: retry.NoLimit, U: 1,
			Result: call.Result{Class: call.Unavailable, RetryAfter: pause, Exact: exact},
		})
	}
	again := func(d time.Duration) retry.Decision { return retry.Decision{Again: true, Delay: d} }
	require.Equal(t, again(50*time.Millisecond), next(3, 0, 50*time.Millisecond, true), "shorter than the back-off")
	require.Equal(t, again(0), next(3, 0, 0, true))
	require.Equal(t, again(time.Minute), next(3, 0, time.Minute, true))
	require.Equal(t, retry.Decision{Reason: retry.ErrRetryAfter}, next(3, 0, time.Minute+1, true))
	require.Equal(t, again(4*time.Second), next(3, 0, 50*time.Millisecond, false), "the least wait otherwise")
	require.Equal(t, again(time.Second), next(4, 3, 0, false), "as after the first attempt")
	require.Equal(t, again(2*time.Second), next(5, 3, 0, false))

	p.Backoff = retry.Backoff{Base: time.Second, Cap: time.Minute, Jitter: retry.DecorrelatedJitter}
	d := p.Next(retry.Input{
		Attempt: 4, Before: 3, PrevDelay: 20 * time.Second, Safety: call.ReadOnly, Left: retry.NoLimit, U: 1,
		Result: call.Result{Class: call.Unavailable},
	})
	require.Equal(t, again(3*time.Second), d, "the wait before was another back-off's")
}

// R2 but for what a policy knows to pass: a client's fault.
func TestR2_AClientFaultThatPasses(t *testing.T) {
	for _, c := range []struct {
		r    call.Result
		s    call.Safety
		want bool
	}{
		{call.Result{Class: call.ClientFault}, call.ReadOnly, false},
		{call.Result{Class: call.ClientFault, Retry: true}, call.ReadOnly, true},
		{call.Result{Class: call.ClientFault, Retry: true}, call.Unsafe, false},
		{call.Result{Class: call.ClientFault, Retry: true, NoRetry: true}, call.ReadOnly, false},
		{call.Result{Class: call.Canceled, Retry: true}, call.ReadOnly, false},
		{call.Result{Class: call.Refused, Retry: true}, call.ReadOnly, false},
		{call.Result{Class: call.Permanent, Retry: true}, call.ReadOnly, false},
		{call.Result{Class: call.OK, Retry: true}, call.ReadOnly, false},
	} {
		require.Equal(t, c.want, retry.Repeatable(c.r, c.s, false), "%+v", c)
	}
}
