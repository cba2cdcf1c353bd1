package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/instance"
	"github.com/holdfast-go/holdfast/outlier"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// F7: an instance on trial has as long as the policy gives an attempt: one that is
// well and takes 15 s to answer comes back.
func TestF7_ATrialHasTheTimeOfAnAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		k := newKit(t, holdfast.Policy{Retry: retry.Off(), Timeout: &timeout.Limits{Attempt: 30 * time.Second}, Breaker: breaker.Off()})
		back := ""
		set, err := instance.New(outlier.Config{
			MinCalls: 1, Time: time.Second, Returned: func(name string) { back = name },
		}, "good", "slow")
		require.NoError(t, err)
		u, err := bound(t, k).Upstreams(holdfast.Upstream{Name: "S", Instances: set})
		require.NoError(t, err)
		b, err := k.Bind(namesAsTheyAre)
		require.NoError(t, err)
		slow := 0
		for slow < 2 {
			var c holdfast.Call
			ctx, err := c.Begin(t.Context(), b.Table().Default(), call.Info{Method: "m", Safety: call.ReadOnly}, holdfast.Terms{Upstreams: u})
			require.NoError(t, err)
			_, _ = c.Run(ctx, func(context.Context, int) {
				switch {
				case c.Instance() == 0:
					c.End(up)
					return
				case slow == 0:
					slow++
					c.End(fault)
					return
				}
				slow++
				time.Sleep(15 * time.Second)
				c.End(up)
			})
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, "slow", back)
	})
}

// F7: the failure of a trial speaks for its instance, and not against the service.
func TestF7_AFailedTrialIsNoNewsOfTheService(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Retry = retry.Off()
		policy.Breaker = &breaker.Config{Consecutive: 1, Jitter: breaker.NoJitter}
		k := newKit(t, policy)
		set, err := instance.New(outlier.Config{MinCalls: 1, Time: time.Second}, "good", "bad")
		require.NoError(t, err)
		u, err := bound(t, k).Upstreams(holdfast.Upstream{Name: "S", Instances: set})
		require.NoError(t, err)
		p := &places{kit: k, list: u, steps: map[string][]call.Result{}, count: map[string]int{}}
		trials := 0
		ask := func() {
			b, err := k.Bind(namesAsTheyAre)
			require.NoError(t, err)
			var c holdfast.Call
			ctx, err := c.Begin(t.Context(), b.Table().Default(), call.Info{Method: "m", Safety: call.ReadOnly}, holdfast.Terms{Upstreams: u})
			require.NoError(t, err)
			_, _ = c.Run(ctx, func(context.Context, int) {
				c.End(up)
				if c.Instance() == 1 {
					trials++
					c.End(fault)
				}
			})
		}
		for trials == 0 {
			ask()
		}
		require.Equal(t, breaker.Open, p.breaker(t, "S").State(), "before the ejection it counts")
		p.breaker(t, "S").Reset()
		for trials < 5 {
			ask()
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, breaker.Closed, p.breaker(t, "S").State())
	})
}
