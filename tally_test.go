package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
)

func TestATallyHasNothingOfWhatIsNoClassAndNoCause(t *testing.T) {
	k := newKit(t, quick())
	k.Count()
	_, _ = holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) { return 0, errDown })
	seen := 0
	for _, tally := range k.Tallies() {
		seen++
		require.EqualValues(t, 1, tally.Calls(call.ServerFault))
		for _, class := range []call.Class{0, 99, 255} {
			require.Zero(t, tally.Calls(class))
			require.Zero(t, tally.Attempts(class))
		}
		for _, cause := range []holdfast.Cause{holdfast.Cause(len(holdfast.Causes())), 99, 255} {
			require.Zero(t, tally.Refusals(cause))
			require.Zero(t, tally.Denied(cause))
		}
	}
	require.Equal(t, 1, seen)
}

// Whoever has it count when somebody wants that pays for nothing before, and misses no
// more than a second of calls.
func TestAKitCountsFromWhenSomebodyWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, quick())
		calls := func() (n uint64) {
			for _, tally := range k.Tallies() {
				n += tally.Calls(call.OK)
			}
			return n
		}
		make := func() { _, _ = do(t.Context(), k, read, answers(ok)) }
		var first, second bool
		asked := 0
		k.CountWhen(func() bool { asked++; return first })
		k.CountWhen(func() bool { return second })
		for range 10 {
			make()
		}
		require.Zero(t, calls())
		require.Equal(t, 2, asked, "once when it was said, once by a call")

		second = true
		make()
		require.Zero(t, calls(), "the second is not over")
		time.Sleep(time.Second)
		make()
		require.EqualValues(t, 1, calls(), "the call that finds out is counted")
		asked = 0
		time.Sleep(time.Second)
		make()
		require.EqualValues(t, 2, calls())
		require.Zero(t, asked)
	})
}

// What panics after a call's plain good end does not take the call from the counters.
func TestAHookThatPanicsAtTheEndLosesNoCount(t *testing.T) {
	for name, hooks := range map[string]holdfast.Hooks{
		"Tried":      {Tried: func(context.Context, holdfast.Tried) { panic("hook") }},
		"Returned":   {Returned: func(context.Context, holdfast.Returned) { panic("hook") }},
		"ProbeEnded": {ProbeEnded: func(breaker.ProbeEnd) { panic("hook") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, quick())
				k.Count()
				open(t, k)
				time.Sleep(time.Hour) // the next call is a probe
				var before [2]uint64
				count := func() (n [2]uint64) {
					for _, tally := range k.Tallies() {
						n[0] += tally.Calls(call.OK)
						n[1] += tally.Attempts(call.OK)
					}
					return n
				}
				before = count()
				defer k.Attach(hooks)()
				require.Panics(t, func() { _, _ = do(t.Context(), k, read, answers(ok)) })
				require.Equal(t, [2]uint64{before[0] + 1, before[1] + 1}, count())
			})
		})
	}
}
