package holdfast_test

import (
	"context"
	"maps"
	"math"
	"slices"
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

// C1: the zero Config runs the standard policy, which is valid as it stands.
func TestC1_TheZeroConfigIsUseful(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{})
	require.NoError(t, err)
	require.Equal(t, "holdfast", k.Name())
	e, err := k.Explain("anything")
	require.NoError(t, err)
	require.Equal(t, "Default", e.Entry)
	require.Equal(t, holdfast.Origins{Fallback: "Standard", Retry: "Standard", Breaker: "Standard", Timeout: "Standard", Bulkhead: "Standard"}, e.From)
	require.Equal(t, holdfast.Standard().Timeout, e.Policy.Timeout)

	_, err = holdfast.New(holdfast.Config{Default: holdfast.Standard()})
	require.NoError(t, err)
}

// C1, D091: every bad field is named, all in one error.
func TestC1_EveryBadFieldIsNamed(t *testing.T) {
	_, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Safety:   99,
			Fallback: &fallback.Policy{},
			Breaker:  &breaker.Config{FailureRate: 50},
			Timeout:  &timeout.Limits{Attempt: -1},
			Bulkhead: &bulkhead.Config{},
		},
		Methods: map[string]holdfast.Policy{
			"save": {Retry: &retry.Policy{MaxAttempts: -1}, Breaker: &breaker.Config{FailureRate: math.NaN(), Cooldown: -time.Second}},
		},
	})
	for _, want := range []string{
		"holdfast: bad configuration",
		"Default.Safety = safety(99): ",
		"Default.Fallback.Answer: ",
		"Default.Breaker.FailureRate = 50: ",
		"Default.Timeout.Attempt = -1ns: ",
		"Default.Bulkhead.Limit = 0: ",
		`Methods["save"].Retry.MaxAttempts = -1: `,
		`Methods["save"].Breaker.FailureRate = NaN: `,
		`Methods["save"].Breaker.Cooldown = -1s: `,
	} {
		require.ErrorContains(t, err, want)
	}
}

// T5: the window and the attempt limit are held against each other for each
// effective policy, and both places are named.
func TestT5_AWindowHoldsTwoAttempts(t *testing.T) {
	_, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{Timeout: &timeout.Limits{Attempt: 15 * time.Second}}})
	require.EqualError(t, err, "holdfast: Breaker.Window.Span = 20s: from Standard, must be at least twice Timeout.Attempt = 15s, from Default")

	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{
		"report": {Timeout: &timeout.Limits{Attempt: time.Minute}},
	}})
	require.NoError(t, err, "how names nest is known once an adapter binds the kit")
	_, err = do(t.Context(), k, call.Info{Method: "report"}, answers(ok))
	require.EqualError(t, err, `holdfast: Methods["report"].Breaker.Window.Span = 20s: from Standard, must be at least twice Timeout.Attempt = 1m0s, from Methods["report"]`)

	for _, fits := range []holdfast.Policy{
		{Timeout: &timeout.Limits{Attempt: time.Minute}, Breaker: &breaker.Config{Window: breaker.Window{Calls: 20}}},
		{Timeout: &timeout.Limits{Attempt: time.Minute}, Breaker: breaker.Off()},
		{Timeout: timeout.Off()},
	} {
		_, err = holdfast.New(holdfast.Config{Default: fits})
		require.NoError(t, err)
	}
}

// F1: an entry may set a fallback for a read alone; an inherited one never fires
// for anything else.
func TestF1_OnlyReadsHaveAFallback(t *testing.T) {
	stale := &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return "stale", nil }}
	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{
		"save": {Safety: call.Idempotent, Fallback: stale},
	}})
	require.NoError(t, err)
	_, err = do(t.Context(), k, call.Info{Method: "save"}, answers(ok))
	require.EqualError(t, err, `holdfast: Methods["save"].Fallback: only a ReadOnly method may have one, and this is idempotent`)

	synctest.Test(t, func(t *testing.T) { // D060
		p := quick()
		p.Fallback = stale
		k := newKit(t, p)
		for safety, answered := range map[call.Safety]bool{
			call.SafetyUnknown: false, call.Unsafe: false, call.Idempotent: false, call.ReadOnly: true,
		} {
			got, err := do(t.Context(), k, call.Info{Target: safety.String(), Safety: safety}, answers(down))
			if answered {
				require.NoError(t, err)
				require.Equal(t, "stale", got)
			} else {
				require.ErrorIs(t, err, errDown)
				require.Empty(t, got)
			}
		}
	})
}

// F2, F5: what the fallback is asked for, and what it is told (D063, D064).
func TestF5_TheFallbackKnowsTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen fallback.Failure
		asked, second := 0, error(nil)
		p := quick()
		p.Retry = retry.Off()
		p.Fallback = &fallback.Policy{Answer: func(_ context.Context, f fallback.Failure) (any, error) {
			asked++
			seen = f
			return "stale", second
		}}
		p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result {
			if res.Err == context.Canceled {
				res.Class = call.ClientFault // as a classifier of the user's might say
			}
			return res
		}
		k := newKit(t, p)
		_, err := do(t.Context(), k, read, answers(func(context.Context) error { return context.Canceled }))
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, asked, "a client's fault comes back unchanged")

		open(t, k)
		got, err := do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
		require.Equal(t, "stale", got)
		require.ErrorIs(t, seen.Err, breaker.ErrOpen)
		require.Equal(t, call.Refused, seen.Class)
		require.Equal(t, read, seen.Info)
		require.Zero(t, seen.Attempts)

		second = context.DeadlineExceeded
		_, err = do(t.Context(), k, read, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.ErrorIs(t, err, second)

		left, cancel := context.WithCancel(t.Context())
		s := answers(func(context.Context) error { cancel(); return errDown })
		asked = 0
		k = newKit(t, p)
		_, err = do(left, k, read, s)
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, asked, "nobody waits any more")
	})
}

// A fallback of the wrong type is an error, not a panic.
func TestAFallbackOfTheWrongType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return 7, nil }}
		var end holdfast.CallEnd
		k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{
			Returned: func(_ context.Context, r holdfast.Returned) { end = r.CallEnd },
		}})
		require.NoError(t, err)
		k.Count()
		_, err = do(t.Context(), k, read, answers(down))
		require.EqualError(t, err, `fallback: holdfast: the fallback of "select" returned a int, the call returns a string; answering for: the dependency is down`)
		require.Equal(t, err, end.Err, "D064: it did not succeed")
		require.False(t, end.Fallback)
		for _, tally := range k.Tallies() {
			require.Zero(t, tally.Fallbacks())
		}
	})
}

// D093: a configuration is copied; what happens to it later has no effect.
func TestD093_TheConfigurationIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		c := holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{"one": {Retry: &retry.Policy{MaxAttempts: 2}}}}
		k, err := holdfast.New(c)
		require.NoError(t, err)
		p.Retry.MaxAttempts = 1
		p.Breaker.Consecutive = 1
		c.Methods["one"].Retry.MaxAttempts = 1
		c.Methods["two"] = holdfast.Policy{Retry: retry.Off()}

		s := answers(down)
		_, _ = do(t.Context(), k, read, s)
		require.Equal(t, 3, s.hits)
		s = answers(down)
		_, _ = do(t.Context(), k, call.Info{Target: "other", Method: "one", Safety: call.ReadOnly}, s)
		require.Equal(t, 2, s.hits)
	})
}

// A layer that is set replaces the inherited one whole, nil inherits, Off is a
// decision of its own; state belongs to the level that set the layer.
func TestLayersAreInheritedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		k, err := holdfast.New(holdfast.Config{
			Default: p,
			Methods: map[string]holdfast.Policy{
				"own":      {Breaker: p.Breaker},
				"bare":     {Breaker: breaker.Off(), Retry: retry.Off(), Timeout: timeout.Off(), Bulkhead: bulkhead.Off(), Fallback: fallback.Off()},
				"inherits": {},
			},
		})
		require.NoError(t, err)
		open(t, k)

		info := func(method string) call.Info {
			return call.Info{Target: read.Target, Method: method, Safety: call.ReadOnly}
		}
		_, err = do(t.Context(), k, info("inherits"), answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen, "shares Default's breaker")
		require.ErrorContains(t, err, "db is open")

		s := answers(down)
		_, err = do(t.Context(), k, info("own"), s)
		require.ErrorIs(t, err, errDown, "has a breaker of its own")
		require.Equal(t, 3, s.hits, "and Default's retry")
		_, _ = do(t.Context(), k, info("own"), s)
		_, err = do(t.Context(), k, info("own"), s)
		require.ErrorContains(t, err, "db|own is open", "the name says so")

		s = answers(down)
		_, err = do(t.Context(), k, info("bare"), s)
		require.Equal(t, errDown, err)
		require.Equal(t, 1, s.hits)

		e, err := k.Explain("own")
		require.NoError(t, err)
		require.Equal(t, `Methods["own"]`, e.Entry)
		require.Equal(t, holdfast.Origins{Fallback: "Standard", Retry: "Default", Breaker: `Methods["own"]`, Timeout: "Default", Bulkhead: "Default"}, e.From)
	})
}

// Safety: a method's own entry outranks the wire, Default does not.
func TestSafetyOfAnEntryOutranksTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Safety = call.ReadOnly
		k, err := holdfast.New(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{
			"save": {Safety: call.Unsafe},
			"find": {Safety: call.ReadOnly},
		}})
		require.NoError(t, err)
		for name, tc := range map[string]struct {
			info call.Info
			hits int
		}{
			"the entry says unsafe":         {call.Info{Target: "1", Method: "save", Safety: call.ReadOnly}, 1},
			"the entry says read-only":      {call.Info{Target: "2", Method: "find", Safety: call.Unsafe}, 3},
			"the wire outranks Default":     {call.Info{Target: "3", Method: "other", Safety: call.Unsafe}, 1},
			"Default where nobody says any": {call.Info{Target: "4", Method: "other"}, 3},
		} {
			s := answers(down)
			_, _ = do(t.Context(), k, tc.info, s)
			require.Equal(t, tc.hits, s.hits, name)
		}
	})
}

func TestANilKitIsAnError(t *testing.T) {
	_, err := do(t.Context(), nil, read, answers(ok))
	require.EqualError(t, err, "holdfast: the kit is nil; make one with holdfast.New")

	k := newKit(t, holdfast.Policy{})
	_, err = holdfast.Do[int](t.Context(), k, read, nil)
	require.EqualError(t, err, "holdfast: the function to call is nil")
}

// An override holds for one call; a bad one fails it, naming the field.
func TestAnOverrideHoldsForOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, quick())
		ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Safety: call.Idempotent, Retry: &retry.Policy{MaxAttempts: 2, Backoff: retry.NoWait()}})

		inner, outer := answers(down), 0
		_, err := holdfast.Do(ctx, k, call.Info{Target: "a"}, func(ctx context.Context) (int, error) {
			outer++
			_, err := do(ctx, k, call.Info{Target: "b"}, inner)
			return 0, err
		})
		require.ErrorIs(t, err, errDown)
		require.Equal(t, 2, outer)
		require.Equal(t, 2, inner.hits, "once for each attempt: the inner calls have no override")

		once := holdfast.WithOverride(t.Context(), holdfast.Override{Retry: retry.Off(), Timeout: timeout.Off(), Fallback: fallback.Off()})
		s := answers(down)
		_, err = do(once, k, read, s)
		require.Equal(t, errDown, err)
		require.Equal(t, 1, s.hits)

		bad := holdfast.WithOverride(t.Context(), holdfast.Override{Safety: 77, Retry: &retry.Policy{MaxAttempts: -2}, Timeout: &timeout.Limits{Total: -1}})
		s = answers(ok)
		_, err = do(bad, k, read, s)
		require.ErrorContains(t, err, "Override.Safety = safety(77): ")
		require.ErrorContains(t, err, "Override.Retry.MaxAttempts = -2: ")
		require.ErrorContains(t, err, "Override.Timeout.Total = -1ns: ")
		require.Zero(t, s.hits)
	})
}

// T5: Explain names what bounds each wait, and why a call gets one attempt.
func TestT5_ExplainNamesWhatBoundsEachWait(t *testing.T) {
	p := quick()
	p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 5, MaxWait: time.Second}
	k, err := holdfast.New(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{
		"find":  {Safety: call.ReadOnly},
		"once":  {Safety: call.ReadOnly, Retry: retry.Off()},
		"first": {Safety: call.ReadOnly, Retry: &retry.Policy{MaxAttempts: 1}},
		"save":  {Safety: call.Unsafe, Timeout: timeout.Off()},
	}})
	require.NoError(t, err)
	_, err = do(t.Context(), k, call.Info{Target: "db", Method: "find"}, answers(ok)) // so that the names are read
	require.NoError(t, err)
	for method, want := range map[string]string{
		"find":  "",
		"once":  `Retry is off in Methods["once"]`,
		"first": `Retry.MaxAttempts is 1 in Methods["first"]`,
		"save":  `it is unsafe, says Methods["save"]`,
		"other": "nothing declares that other may be repeated: set Safety in its entry of Config.Methods, or in the call's Info",
	} {
		e, err := k.Explain(method)
		require.NoError(t, err)
		require.Equal(t, want, e.OneAttempt)
	}
	e, err := k.Explain("find")
	require.NoError(t, err)
	require.Equal(t, []holdfast.Wait{
		{What: "the whole call, to the function's return", Bound: "only the caller's context"},
		{What: "one attempt, to the function's return", Bound: "Timeout.Attempt 100ms, from Default"},
		{What: "the bulkhead's queue", Bound: "Bulkhead.MaxWait 1s, from Default"},
	}, e.Waits)
	require.Equal(t, `find
  entry: Methods["find"]
  safety: read_only, says Methods["find"]
  fallback: off, from Standard
  retry: on, from Default
  breaker: on, from Default
  timeout: on, from Default
  bulkhead: on, from Default
  wait: the whole call, to the function's return: only the caller's context
  wait: one attempt, to the function's return: Timeout.Attempt 100ms, from Default
  wait: the bulkhead's queue: Bulkhead.MaxWait 1s, from Default
`, e.String())

	e, err = k.Explain("save")
	require.NoError(t, err)
	require.Equal(t, "only the caller's context", e.Waits[0].Bound)
	require.Equal(t, "only the caller's context", e.Waits[1].Bound)
}

// B10: an operator reaches the kit's breakers by name and forces one open; no
// clock ends that (D013).
func TestB10_AnOperatorForcesAKitsBreakerOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		k, err := holdfast.New(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{"own": {Breaker: p.Breaker}}})
		require.NoError(t, err)
		for _, method := range []string{"select", "own"} {
			_, err = do(t.Context(), k, call.Info{Target: "db", Method: method}, answers(ok))
			require.NoError(t, err)
		}
		breakers := maps.Collect(k.Breakers())
		require.Equal(t, []string{"db", "db|own"}, slices.Sorted(maps.Keys(breakers)))
		for range k.Breakers() {
			break // a range may end early
		}

		breakers["db"].ForceOpen("maintenance")
		time.Sleep(time.Hour)
		_, err = do(t.Context(), k, read, answers(ok))
		var open *breaker.OpenError
		require.ErrorAs(t, err, &open)
		require.True(t, open.Forced())
		require.Equal(t, "maintenance", open.Note())
		_, err = do(t.Context(), k, call.Info{Target: "db", Method: "own"}, answers(ok))
		require.NoError(t, err)

		breakers["db"].Reset()
		_, err = do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
	})
}
