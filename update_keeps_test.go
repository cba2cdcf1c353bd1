package holdfast_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/latency"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// B10: no update ends a forced open, whatever it changes of the layer.
func TestB10_AnUpdateKeepsAForcedOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		k := newKit(t, p)
		_, _ = do(t.Context(), k, read, answers(ok))
		maps.Collect(k.Breakers())["db"].ForceOpen("maintenance")
		p.Breaker.Window, p.Breaker.Cooldown, p.Breaker.Scope = breaker.Window{Span: time.Minute}, time.Minute, breaker.TwoLevel
		update(t, k, p)
		time.Sleep(time.Hour)
		_, err := do(t.Context(), k, read, answers(ok))
		var refusal *breaker.OpenError
		require.ErrorAs(t, err, &refusal)
		require.True(t, refusal.Forced())
		require.Equal(t, "maintenance", refusal.Note())
		maps.Collect(k.Breakers())["db"].Release()
		time.Sleep(time.Minute)
		_, err = do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
	})
}

// C2: a budget keeps its tokens under other numbers, for those that share it too,
// and a hedge the latencies that it has seen.
func TestC2_BudgetsKeepTheirTokens(t *testing.T) {
	few := func(n float64, shared bool) holdfast.Policy {
		p := quick()
		p.Breaker = breaker.Off()
		p.Retry = &retry.Policy{MaxAttempts: 50, Backoff: retry.NoWait(), Budget: retry.Budget{PerSecond: 1e-6, Initial: n, Shared: shared}}
		return p
	}
	spent := func(t *testing.T, k *holdfast.Kit, method string) int {
		s := answers(down)
		_, _ = do(t.Context(), k, call.Info{Target: "db", Method: method, Safety: call.ReadOnly}, s)
		return s.hits - 1
	}
	t.Run("own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := newKit(t, few(7, false))
			require.Equal(t, 7, spent(t, k, "a"))
			update(t, k, few(20, false))
			require.Zero(t, spent(t, k, "a"), "an update is no refill")
			_, _ = do(t.Context(), k, call.Info{Target: "other", Safety: call.ReadOnly}, answers(ok))
			p := few(20, false)
			p.Retry.Budget.Cap, p.Retry.Budget.Initial = 5, 0
			update(t, k, p)
			s := answers(down)
			_, _ = do(t.Context(), k, call.Info{Target: "other", Safety: call.ReadOnly}, s)
			require.Equal(t, 5, s.hits-1, "at most the new Cap")
			update(t, k, few(20, true))
			require.Equal(t, 20, spent(t, k, "a"), "shared is another bucket")
		})
	})
	t.Run("shared", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			two := func(n, m float64) holdfast.Config {
				return holdfast.Config{Methods: map[string]holdfast.Policy{"a": few(n, true), "b": few(m, true)}}
			}
			k, err := holdfast.New(two(7, 7))
			require.NoError(t, err)
			require.Equal(t, 7, spent(t, k, "a"))
			require.Zero(t, spent(t, k, "b"))
			require.NoError(t, k.Update(two(9, 9)))
			require.Zero(t, spent(t, k, "a")+spent(t, k, "b"), "both have gone on to the new numbers")
			require.NoError(t, k.Update(two(9, 8)))
			require.Zero(t, spent(t, k, "a"), "a still has the old bucket")
			require.Equal(t, 8, spent(t, k, "b"), "and b begins one")
		})
	})
	t.Run("latencies", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := hedging()
			p.Timeout, p.Breaker = timeout.Off(), breaker.Off()
			p.Retry.Hedge, p.Retry.Budget = retry.Hedge{Percentile: 0.99}, retry.NoBudget()
			k := newKit(t, p)
			for i := range 4 * latency.Samples {
				_, err := holdfast.Do(t.Context(), k, read, laneSteps(after([]time.Duration{40 * ms, 200 * ms}[i%2], ok)).call)
				require.NoError(t, err)
			}
			hedged := func() bool {
				l := laneSteps(after(80*ms, ok))
				_, err := holdfast.Do(t.Context(), k, read, l.call)
				require.NoError(t, err)
				return l.hits > 1
			}
			time.Sleep(2 * time.Second)
			require.False(t, hedged())
			p.Retry = copied(p.Retry)
			p.Retry.Hedge.Percentile = 0.4
			update(t, k, p)
			require.True(t, hedged(), "after 40 ms, not the least delay: what was seen is known")
			p.Retry.Hedge.Percentile = 0.99
			update(t, k, p)
			require.False(t, hedged())
		})
	})
}

// C2: permits that are out count under the new limit, who waits keeps its place,
// and a bulkhead that is switched off and on again has lost none.
func TestC2_BulkheadsKeepTheirPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry, p.Timeout = retry.Off(), timeout.Off()
		p.Bulkhead = &bulkhead.Config{Limit: 2, Queue: 1}
		k, release := newKit(t, p), make(chan struct{})
		hold := func() {
			go func() {
				if _, err := do(t.Context(), k, read, answers(func(context.Context) error { <-release; return nil })); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		full := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), ms)
			defer cancel()
			_, err := do(ctx, k, read, answers(ok))
			return err != nil
		}
		for range 3 { // two run, one waits
			hold()
		}
		require.True(t, full())
		p.Bulkhead.Limit = 3
		update(t, k, p) // the one that waits runs
		require.True(t, full(), "three of three")
		p.Bulkhead.Limit = 4
		update(t, k, p)
		require.False(t, full())

		off := p
		off.Bulkhead = bulkhead.Off()
		update(t, k, off)
		require.False(t, full())
		p.Bulkhead.Limit = 3
		update(t, k, p)
		require.True(t, full(), "the three are still out")
		p.Bulkhead.Scope, p.Bulkhead.MethodLimit = bulkhead.TwoLevel, 3
		update(t, k, p)
		require.True(t, full(), "the target's goes on under two levels")
		close(release)
		synctest.Wait()
		require.False(t, full())
	})
}

// C2: hooks that were attached stay, the counting of calls goes on, and the totals
// of what an update drops are still there.
func TestC2_AnUpdateLosesNoCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		k := newKit(t, p)
		var told []string
		detach := k.Attach(holdfast.Hooks{Transition: func(m breaker.Transition) { told = append(told, m.Key) }})
		k.Count()
		open(t, k)
		own := p
		own.Breaker = copied(p.Breaker)
		own.Breaker.Scope = breaker.PerMethod
		opens := func() (n uint64) {
			for _, b := range k.Breakers() {
				n += b.Counts().Totals.Opens
			}
			_, evicted := k.Evicted()
			return n + evicted.Opens
		}
		before, _ := k.Evicted()
		for i, p := range []holdfast.Policy{own, {Breaker: breaker.Off()}, p} {
			update(t, k, p)
			require.EqualValues(t, []int{1, 2, 2}[i], opens())
			if i != 1 {
				open(t, k)
			}
		}
		require.EqualValues(t, 3, opens())
		after, _ := k.Evicted()
		require.Greater(t, after, before, "a reader sees that something was dropped")
		require.Equal(t, []string{"db", "db|insert", "db"}, told)
		detach()
		for name, tally := range k.Tallies() {
			require.Equal(t, "insert", name)
			require.EqualValues(t, 15, tally.Calls(call.ServerFault))
		}
	})
}
