package holdfast_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/instance"
	"github.com/holdfast-go/holdfast/outlier"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// occupy takes the one permit of an upstream until the test's end.
func (p *places) occupy(t *testing.T, name string) {
	taken := make(chan struct{})
	go func() {
		_, _ = holdfast.Do(t.Context(), p.kit, call.Info{Target: name, Method: "m"}, func(ctx context.Context) (int, error) {
			close(taken)
			<-ctx.Done()
			return 0, ctx.Err()
		})
	}()
	<-taken
}

// queueing is a policy under which an attempt waits for the one permit there is.
func queueing() holdfast.Policy {
	policy := steady()
	policy.Timeout = &timeout.Limits{Total: time.Hour}
	policy.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 10, MaxWait: time.Hour}
	return policy
}

// F6, D060: that a write was not sent is said of the whole walk. Here the second
// upstream never got it, but the first did.
func TestF6_AWriteThatOneUpstreamGotWasSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for sent, first := range map[bool]call.Result{true: fault, false: unsent} {
			p := list(t, queueing(), "A", "B")
			p.script("A", first)
			p.occupy(t, "B")
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			c, err := p.call(ctx, asCaller{safety: call.Idempotent})
			cancel()
			require.Equal(t, "A", p.took())
			require.ErrorIs(t, err, context.DeadlineExceeded)
			var write *fallback.WriteError
			require.ErrorAs(t, err, &write)
			require.Equal(t, sent, write.Sent)
			require.Equal(t, 1, c.CallEnd(err).Attempts)
		}
	})
}

// R6: the token of a repeat that was sent stays spent, even if the caller is gone
// before the round has come to its end; and nobody is told that the kit refused it.
func TestR6_ARoundThatWasBegunKeepsItsToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := queueing()
		policy.Retry = &retry.Policy{
			MaxAttempts: 2, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Jitter: retry.NoJitter},
			Budget: retry.Budget{Cap: 10, PerSecond: 0.001},
		}
		var p *places
		refusals := 0
		p = listOf(t, holdfast.Config{Default: policy, Hooks: holdfast.Hooks{
			Retry:   func(context.Context, holdfast.Retry) { p.occupy(t, "B") },
			Refused: func(context.Context, holdfast.Refusal) { refusals++ },
		}}, "A", "B")
		p.script("A", fault)
		p.script("B", fault)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.call(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "A B A", p.took())
		require.InDelta(t, 9, maps.Collect(p.kit.Budgets())["A"].Tokens(), 0.01)
		require.Zero(t, refusals)
	})
}

// B1, F7: a hook of an instance's that panics while the attempt is admitted leaves
// neither ticket nor permit behind.
func TestB1_APanickingOutlierHookLeavesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Retry = retry.Off()
		policy.Timeout = &timeout.Limits{Total: time.Hour}
		k := newKit(t, policy)
		ejected := 0
		set, err := instance.New(outlier.Config{MinCalls: 1, Time: time.Second, Ejected: func(string, time.Duration) {
			if ejected++; ejected == 2 {
				panic("hook")
			}
		}}, "a", "b")
		require.NoError(t, err)
		u, err := bound(t, k).Upstreams(holdfast.Upstream{Name: "S", Instances: set})
		require.NoError(t, err)
		p := &places{kit: k, list: u, steps: map[string][]call.Result{}, count: map[string]int{}}
		p.script("S", fault, up)
		_, err = p.call(t.Context())
		require.Error(t, err)
		require.Equal(t, 1, ejected)
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		for range 2 { // one of them is the trial, and its lease runs out
			go func() {
				_, _ = p.call(ctx, asCaller{safety: call.ReadOnly, takes: time.Hour})
				done <- struct{}{}
			}()
		}
		time.Sleep(time.Minute)
		panicked := 0
		for range 3 {
			func() {
				defer func() {
					if recover() != nil {
						panicked++
					}
				}()
				_, _ = p.call(t.Context())
			}()
		}
		require.Equal(t, 1, panicked)
		cancel()
		<-done
		<-done
		for name, b := range k.Bulkheads() {
			require.Zero(t, b.InUse(), name)
		}
		for _, i := range set.Instances() {
			require.Zero(t, i.InFlight, i.Name)
		}
	})
}

// B1, R6: the token of a repeat goes back if a hook or what is to prepare it panics.
func TestR6_APanicBeforeARepeatCostsNoToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tokens := func(k *holdfast.Kit) float64 {
			for _, b := range k.Budgets() {
				return b.Tokens()
			}
			return -1
		}
		policy := queueing()
		policy.Retry = &retry.Policy{MaxAttempts: 2, Backoff: retry.NoWait(), Budget: retry.Budget{Cap: 10, PerSecond: 0.001}}
		k, err := holdfast.New(holdfast.Config{Default: policy, Hooks: holdfast.Hooks{
			Retry: func(context.Context, holdfast.Retry) { panic("boom") },
		}})
		require.NoError(t, err)
		require.PanicsWithValue(t, "boom", func() { _, _ = do(t.Context(), k, read, answers(down)) })
		require.InDelta(t, 10, tokens(k), 0.01, "a hook")

		k = newKit(t, policy)
		b, err := k.Bind(namesAsTheyAre)
		require.NoError(t, err)
		var c holdfast.Call
		ctx, err := c.Begin(t.Context(), b.Table().Default(), read, holdfast.Terms{})
		require.NoError(t, err)
		require.True(t, c.Next(ctx, new(call.Result), nil))
		var a holdfast.Attempt
		held := c.OpenHeld(ctx, &a, new(call.Result))
		require.NotNil(t, held)
		a.Book(ctx, fault)
		a.Release()
		require.PanicsWithValue(t, "boom", func() { c.Next(ctx, &fault, func(context.Context) error { panic("boom") }) })
		require.InDelta(t, 10, tokens(k), 0.01, "what prepares it")
	})
}
