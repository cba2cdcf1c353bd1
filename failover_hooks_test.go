package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/retry"
)

// The hooks tell of hops and of rounds, and what came before.
func TestHooksTellOfHops(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var told []string
		policy := steady()
		policy.Retry = &retry.Policy{MaxAttempts: 2, Backoff: retry.NoWait()}
		p := listOf(t, holdfast.Config{Default: policy, Hooks: holdfast.Hooks{
			Retry: func(_ context.Context, r holdfast.Retry) {
				told = append(told, "again at "+r.Info.Target+" after "+r.After.Class.String())
			},
			Failover: func(_ context.Context, f holdfast.Failover) {
				told = append(told, f.From+" to "+f.Info.Target+" after "+f.After.Class.String())
			},
		}}, "A", "B")
		p.script("A", fault, fault, up)
		p.script("B", fault, up)
		_, err := p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"A to B after unavailable", "again at A after unavailable", "A to B after unavailable"}, told)
		p.breaker(t, "A").ForceOpen("test")
		told = nil
		_, err = p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"A to B after refused"}, told)
	})
}

// A hook that panics leaves nothing held.
func TestAPanicInTheFailoverHookLeavesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Bulkhead = &bulkhead.Config{Limit: 1}
		boom := true
		p := listOf(t, holdfast.Config{Default: policy, Hooks: holdfast.Hooks{Failover: func(context.Context, holdfast.Failover) {
			if boom {
				panic("boom")
			}
		}}}, "A", "B")
		p.script("A", fault)
		for range 3 {
			require.PanicsWithValue(t, "boom", func() { _, _ = p.call(t.Context()) })
		}
		boom = false
		_, err := p.call(t.Context())
		require.NoError(t, err, "B's one permit is free")
	})
}

// The upstream where the walk has come to its end may be the one to try in spite of
// its refusal. That is no hop from itself.
func TestF6_AForcedTryIsToldAsAHopFromTheUpstreamBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Retry = retry.Off()
		p.Breaker.Consecutive, p.Breaker.Cooldown = 1, 10*time.Second
		var told []string
		c := holdfast.Config{Default: p, Hooks: holdfast.Hooks{Failover: func(_ context.Context, f holdfast.Failover) {
			told = append(told, f.From+">"+f.Info.Target+" after "+f.After.Class.String())
		}}}
		for name, forced := range map[string]string{"a": "b>a after refused", "b": "a>b after refused"} {
			told = nil
			l := listOf(t, c, "a", "b")
			l.kit.Count()
			l.script("a", fault)
			l.script("b", fault)
			_, _ = l.call(t.Context())
			require.Equal(t, []string{"a>b after unavailable"}, told)
			told = nil
			l.breaker(t, map[string]string{"a": "b", "b": "a"}[name]).ForceOpen("not this one")
			l.took()
			_, _ = l.call(t.Context())
			require.Equal(t, name, l.took())
			require.Equal(t, []string{forced}, told)
			for _, tally := range l.kit.Tallies() {
				require.EqualValues(t, 2, tally.Failovers())
			}
			time.Sleep(time.Minute)
		}
	})
}
