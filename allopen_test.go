package holdfast_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
)

// closedOff returns A, opened at 0 s for 30 s, B, opened at 10 s, and C, forced open,
// at 15 s.
func closedOff(t *testing.T, p holdfast.Policy) *places {
	p.Breaker = &breaker.Config{Consecutive: 1, Cooldown: 30 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1}
	list := list(t, p, "A", "B", "C")
	list.script("A", fault)
	_, err := list.call(t.Context())
	require.NoError(t, err)
	time.Sleep(10 * time.Second)
	list.script("B", fault)
	_, err = list.call(t.Context())
	require.NoError(t, err)
	list.breaker(t, "C").ForceOpen("maintenance")
	time.Sleep(5 * time.Second)
	require.Equal(t, "A B B C", list.took())
	return list
}

// D067, F6: with all closed off one forced try goes to the one with the least
// cooldown left, never to the one that was forced open.
func TestD067_AllOpen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := closedOff(t, fragile())
		p.script("A", up)
		_, err := p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A", p.took())
		require.Equal(t, breaker.Closed, p.breaker(t, "A").State())

		p = closedOff(t, fragile())
		left := p.breaker(t, "A").Generation()
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, errDown, "the caller gets the failure")
		require.Equal(t, "A", p.took())
		require.Equal(t, breaker.Open, p.breaker(t, "A").State())
		require.Equal(t, left+2, p.breaker(t, "A").Generation(), "half-open and open again")
		time.Sleep(time.Second)
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		require.Equal(t, "B", p.took(), "A's cooldown has grown")
		require.Equal(t, breaker.ForcedOpen, p.breaker(t, "C").State())
	})
}

// F6: fifty callers at once make at most one forced try at a time and one a second;
// the others are refused, and wait for nothing.
func TestF6_AtMostOneForcedTryASecond(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := closedOff(t, fragile())
		begin := time.Now()
		var refused atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				_, err := p.call(t.Context(), asCaller{safety: call.ReadOnly, takes: 10 * time.Millisecond})
				if holdfast.Refused(err) {
					refused.Add(1)
				}
			})
		}
		all.Wait()
		require.Equal(t, 10*time.Millisecond, time.Since(begin), "the try's own time")
		require.Equal(t, "A", p.took())
		require.EqualValues(t, 49, refused.Load())

		tries := 0
		for range 100 { // 5 s with a caller each 50 ms
			_, _ = p.call(t.Context())
			if p.took() != "" {
				tries++
			}
			time.Sleep(50 * time.Millisecond)
		}
		require.Equal(t, 4, tries, "beside the first")
		require.Less(t, time.Since(begin), 6*time.Second)
		require.EqualValues(t, 0, p.breaker(t, "C").Counts().Totals.ProbesFailed)
	})
}

// F6: one in flight, however long it takes; and its end, whatever it is, frees the
// place.
func TestF6_AForcedTryIsAloneAndFreesItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := fragile()
		policy.Timeout.Attempt = 0
		p := closedOff(t, policy)
		var first sync.WaitGroup
		first.Go(func() { _, _ = p.call(t.Context(), asCaller{safety: call.ReadOnly, takes: 5 * time.Second}) })
		for range 40 {
			time.Sleep(100 * time.Millisecond)
			_, err := p.call(t.Context())
			require.ErrorIs(t, err, breaker.ErrOpen)
		}
		first.Wait()
		require.Equal(t, "A", p.took())
		_, err := p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		require.Equal(t, "B", p.took())
	})
}

// F6: one in flight for the whole list, also if somebody forces open the one that it
// is for.
func TestF6_OneForcedTryForTheWholeList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := fragile()
		policy.Timeout.Attempt = 0
		p := closedOff(t, policy)
		var first sync.WaitGroup
		first.Go(func() { _, _ = p.call(t.Context(), asCaller{safety: call.ReadOnly, takes: 5 * time.Second}) })
		synctest.Wait()
		p.breaker(t, "A").ForceOpen("test")
		time.Sleep(2 * time.Second)
		_, err := p.call(t.Context())
		require.ErrorIs(t, err, breaker.ErrOpen, "A's is in flight")
		first.Wait()
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		require.Equal(t, "A B", p.took())
	})
}

// F6: the rule is for lists of two and more, for all open, and for a call that has
// reached nobody.
func TestF6_NoForcedTryOtherwise(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := list(t, fragile(), "A")
		p.script("A", fault)
		_, err := p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, breaker.ErrOpen, "one upstream has no such rule")

		p = list(t, fragile(), "A", "B")
		p.script("A", fault)
		p.script("B", fault)
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		require.Equal(t, "A B", p.took(), "the call that opened them both tries none again")

		p.breaker(t, "A").ForceOpen("test")
		p.breaker(t, "B").ForceOpen("test")
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Empty(t, p.took())

		p.breaker(t, "A").Reset()
		p.breaker(t, "B").Reset()
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		p.took()
		time.Sleep(10 * time.Second)
		var probe sync.WaitGroup
		probe.Go(func() { _, _ = p.call(t.Context(), asCaller{safety: call.ReadOnly, takes: time.Millisecond}) })
		synctest.Wait()
		p.breaker(t, "B").Reset()
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, breaker.ErrOpen, "A is being probed: no other needs a forced try")
		probe.Wait()
	})
}

// F6: a hook that panics while a try is forced leaves the place free.
func TestF6_APanicFreesTheForcedTry(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := fragile()
		boom := false
		policy.Breaker.Hooks.Transition = func(tr breaker.Transition) {
			if boom && tr.To == breaker.HalfOpen {
				panic("boom")
			}
		}
		p := list(t, policy, "A", "B")
		p.script("A", fault)
		p.script("B", fault)
		_, _ = p.call(t.Context())
		p.took()
		boom = true
		require.PanicsWithValue(t, "boom", func() { _, _ = p.call(t.Context()) })
		boom = false
		time.Sleep(time.Second)
		_, err := p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		require.NotEmpty(t, p.took())
	})
}

// F6: a forced try that goes on as a stream keeps the next from nobody: it was one
// until it was answered, or its lease ran out.
func TestF6_AStreamIsNoForcedTryForEver(t *testing.T) {
	for _, answered := range []bool{true, false} {
		inBubble(t, func(t *testing.T) {
			p := closedOff(t, fragile())
			b, err := p.kit.Bind(namesAsTheyAre)
			require.NoError(t, err)
			var c holdfast.Call
			var a holdfast.Attempt
			ctx, err := c.Begin(t.Context(), b.Table().Default(), call.Info{Method: "m", Safety: call.ReadOnly}, holdfast.Terms{Stream: true, Upstreams: p.list})
			require.NoError(t, err)
			held, res := context.Context(nil), call.Result{}
			for held == nil {
				require.True(t, c.Next(ctx, &res, nil))
				held = c.OpenHeld(ctx, &a, &res)
			}
			require.Equal(t, "A", c.Info().Target)
			require.NoError(t, a.Opened())
			_, err = p.call(t.Context())
			require.True(t, holdfast.Refused(err))
			if answered {
				a.Answered()
			}
			time.Sleep(time.Minute)

			p.script("A", fault)
			p.script("B", fault)
			_, err = p.call(t.Context())
			require.Error(t, err)
			time.Sleep(2 * time.Second)
			p.took()
			_, err = p.call(t.Context())
			require.ErrorIs(t, err, errDown)
			require.Len(t, p.took(), 1, "one forced try")
			a.Book(ctx, call.Result{Class: call.OK})
			a.Release()
		})
	}
}
