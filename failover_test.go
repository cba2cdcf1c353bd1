package holdfast_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// F6: a round walks the list once, without waits, and MaxAttempts counts rounds.
func TestF6_MaxAttemptsCountsRounds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Retry = &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Factor: 1, Jitter: retry.NoJitter}}
		p := list(t, policy, "A", "B", "C")
		for _, name := range []string{"A", "B"} {
			p.script(name, fault)
		}
		begin := time.Now()
		c, err := p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A B C", p.took())
		require.Equal(t, 3, c.Attempt())
		require.Zero(t, time.Since(begin), "nothing was waited for")

		p.script("C", fault)
		c, err = p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		require.Equal(t, "A B C A B C A B C", p.took())
		require.Equal(t, 20*time.Millisecond, time.Since(begin), "between the rounds")
		require.Equal(t, 9, c.Attempt())
		require.Nil(t, c.Stopped(), "a natural end")
	})
}

// F6: retry switched off, or a call inside another one's attempt, leaves one round.
func TestF6_WithoutRetryThereIsOneRound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Retry = retry.Off()
		p := list(t, policy, "A", "B")
		p.script("A", fault)
		p.script("B", fault)
		_, err := p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		require.Equal(t, "A B", p.took())

		p = list(t, steady(), "A", "B")
		p.script("A", fault)
		p.script("B", fault)
		_, err = holdfast.Do(t.Context(), newKit(t, steady()), read, func(ctx context.Context) (int, error) {
			_, err := p.call(ctx)
			require.ErrorIs(t, err, errDown)
			return 0, nil
		})
		require.NoError(t, err)
		require.Equal(t, "A B", p.took())
	})
}

// F6: a hop takes no token, a round does, of the first upstream's budget.
func TestF6_AHopTakesNoToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Retry.MaxAttempts = 5
		policy.Retry.Budget = retry.Budget{Share: 0.1, PerSecond: 0.001, Cap: 2}
		p := list(t, policy, "A", "B", "C")
		for _, name := range []string{"A", "B", "C"} {
			p.script(name, fault)
		}
		_, err := p.call(t.Context())
		require.ErrorIs(t, err, retry.ErrBudget)
		require.Equal(t, "A B C A B C A B C", p.took(), "two tokens, two more rounds")
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, retry.ErrBudget)
		require.Equal(t, "A B C", p.took())
	})
}

// F6, R2: once something may have been sent a hop is a repeat.
func TestF6_AnUnsafeCallMovesOnlyIfNothingWasSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			as    asCaller
			first call.Result
			hits  string
		}{
			"unsafe, maybe sent":             {asCaller{safety: call.Unsafe}, fault, "A"},
			"unsafe, not sent":               {asCaller{safety: call.Unsafe}, unsent, "A B"},
			"unsafe with a key, maybe sent":  {asCaller{safety: call.Unsafe, keyed: true}, fault, "A B"},
			"undeclared, maybe sent":         {asCaller{}, fault, "A"},
			"idempotent, maybe sent":         {asCaller{safety: call.Idempotent}, fault, "A B"},
			"a read":                         {asCaller{safety: call.ReadOnly}, fault, "A B"},
			"the client's fault":             {asCaller{safety: call.ReadOnly}, notFound, "A"},
			"an OK":                          {asCaller{safety: call.ReadOnly}, up, "A"},
			"an answer that forbids repeats": {asCaller{safety: call.ReadOnly}, call.Result{Class: call.ServerFault, Err: errDown, NoRetry: true}, "A"},
			"a permanent fault":              {asCaller{safety: call.ReadOnly}, call.Result{Class: call.Permanent, Err: errDown, NotSent: true}, "A"},
			"throttled":                      {asCaller{safety: call.ReadOnly}, call.Result{Class: call.Throttled, Err: errDown, RetryAfter: time.Hour}, "A B"},
			"refused by a kit further in":    {asCaller{safety: call.Unsafe}, call.Result{Class: call.Refused, Err: errDown, NotSent: true}, "A B"},
		} {
			p := list(t, steady(), "A", "B")
			p.script("A", tc.first)
			_, _ = p.call(t.Context(), tc.as)
			require.Equal(t, tc.hits, p.took(), name)
		}
	})
}

// F6: each hop books one result, on its own upstream; one that is passed over books
// nothing.
func TestF6_EachHopBooksOneResult(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Breaker.Window.Calls, policy.Breaker.FailureRate, policy.Breaker.MinCalls = 100, 1, 100
		policy.Retry = retry.Off()
		p := list(t, policy, "A", "B", "C")
		p.script("A", fault)
		p.script("B", fault)
		_, err := p.call(t.Context())
		require.NoError(t, err)
		for name, failures := range map[string]int{"A": 1, "B": 1, "C": 0} {
			counts := p.breaker(t, name).Counts()
			require.EqualValues(t, 1, counts.Results, name)
			require.EqualValues(t, failures, counts.Failures, name)
		}
		p.breaker(t, "A").ForceOpen("test")
		_, err = p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A B C B C", p.took())
		require.EqualValues(t, 2, p.breaker(t, "B").Counts().Failures)
	})
}

// F6: an upstream that refuses, open or full, is passed over at once; if what
// follows fails as well, the last real result comes back with the refusal.
func TestF6_ARefusalIsPassedOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := list(t, fragile(), "A", "B")
		p.script("A", fault)
		_, err := p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A B", p.took())
		_, err = p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "B", p.took(), "A is open")

		p = list(t, fragile(), "A", "B")
		_, err = p.call(t.Context())
		require.NoError(t, err)
		p.script("A", fault)
		_, err = p.call(t.Context())
		require.NoError(t, err)
		p.breaker(t, "B").ForceOpen("test")
		p.breaker(t, "A").Reset()
		p.took()
		c, err := p.call(t.Context())
		require.ErrorIs(t, err, errDown)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, "A", p.took())
		require.Equal(t, 1, c.Stopped().Attempts)

		policy := steady()
		policy.Bulkhead = &bulkhead.Config{Limit: 1}
		p = list(t, policy, "A", "B")
		var others sync.WaitGroup
		for range 2 {
			others.Go(func() { _, _ = p.call(t.Context(), asCaller{safety: call.ReadOnly, takes: time.Millisecond}) })
		}
		synctest.Wait()
		_, err = p.call(t.Context())
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.True(t, holdfast.Refused(err))
		others.Wait()
		require.ElementsMatch(t, []string{"A", "B"}, strings.Fields(p.took()))
	})
}

// F6: the time of the call bounds the walk, and an attempt's limit each hop.
func TestF6_TheWalkEndsWithTheTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Retry = retry.Off()
		policy.Timeout = &timeout.Limits{Total: 250 * time.Millisecond, Attempt: 100 * time.Millisecond, Floor: 60 * time.Millisecond}
		p := list(t, policy, "A", "B", "C")
		begin := time.Now()
		silent := asCaller{safety: call.ReadOnly, takes: time.Hour}
		c, err := p.call(t.Context(), silent)
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.ErrorIs(t, err, retry.ErrNoTime)
		require.Equal(t, 200*time.Millisecond, time.Since(begin))
		require.Equal(t, 2, c.Stopped().Attempts)

		ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
		defer cancel()
		_, err = p.call(ctx, silent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, timeout.ErrExceeded)

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		c, err = p.call(ctx, silent)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, c.Attempt())
	})
}

// R4: a round is not sooner at an upstream than that has asked for; others have
// their turn meanwhile.
func TestR4_EachUpstreamIsLeftAloneAsItAsked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := steady()
		policy.Retry = &retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Factor: 1, Jitter: retry.NoJitter}}
		p := list(t, policy, "A", "B")
		busy := call.Result{Class: call.Throttled, Err: errDown, RetryAfter: 25 * time.Millisecond}
		p.script("A", busy, up)
		p.script("B", fault)
		begin := time.Now()
		_, err := p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A B B B A", p.took())
		require.Equal(t, 30*time.Millisecond, time.Since(begin))

		p.script("A", busy, up)
		p.script("B", call.Result{Class: call.Throttled, Err: errDown, RetryAfter: time.Hour})
		begin = time.Now()
		_, err = p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A B A", p.took())
		require.GreaterOrEqual(t, time.Since(begin), 25*time.Millisecond)
		require.Less(t, time.Since(begin), time.Second)

		p.breaker(t, "B").ForceOpen("test")
		p.script("A", busy, up)
		_, err = p.call(t.Context())
		require.NoError(t, err, "that B may be asked at once is no help")
		require.Equal(t, "A A", p.took())
	})
}

// F6: the preferred upstream is used again once its breaker has closed, and gets
// probes only before. A probe that fails does not fail its call.
func TestF6_TheReturnIsSticky(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := fragile()
		policy.Breaker.ProbeSuccesses = 3
		p := list(t, policy, "A", "B")
		p.script("A", fault, fault, up)
		_, err := p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A B", p.took())

		time.Sleep(10 * time.Second)
		_, err = p.call(t.Context())
		require.NoError(t, err, "the probe failed, the call did not")
		require.Equal(t, "A B", p.took())
		require.Equal(t, breaker.Open, p.breaker(t, "A").State())

		time.Sleep(20 * time.Second)
		var others sync.WaitGroup
		others.Go(func() { _, _ = p.call(t.Context(), asCaller{safety: call.ReadOnly, takes: 50 * time.Millisecond}) })
		synctest.Wait()
		for range 20 {
			_, err := p.call(t.Context())
			require.NoError(t, err)
		}
		require.NotContains(t, p.took(), "A", "one probe is in flight")
		others.Wait()
		require.Equal(t, "A", p.took())
		for range 2 {
			_, err := p.call(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, breaker.Closed, p.breaker(t, "A").State())
		for range 20 {
			_, err := p.call(t.Context())
			require.NoError(t, err)
		}
		require.NotContains(t, p.took(), "B")
	})
}

// R2: a round is not repeated if all it has made were probes, and is if one was not.
func TestR2_ARoundOfProbesIsNotRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			opened string // closed off before, its cooldown over
			hits   string
		}{
			"a probe, then none": {"A", "A B B"},
			"none, then a probe": {"B", "A B A"},
			"two probes":         {"A B", "A B"},
			"no probe at all":    {"", "A B A B"},
		} {
			policy := steady()
			policy.Retry = &retry.Policy{MaxAttempts: 2, Backoff: retry.NoWait()}
			policy.Breaker = &breaker.Config{Consecutive: 2, Cooldown: time.Minute, Jitter: breaker.NoJitter, ProbeSuccesses: 1}
			p := list(t, policy, "A", "B")
			_, err := p.call(t.Context(), asCaller{safety: call.ReadOnly})
			require.NoError(t, err)
			p.script("A", unsent)
			_, err = p.call(t.Context()) // B has a breaker too
			require.NoError(t, err)
			p.breaker(t, "A").Reset()
			for _, name := range strings.Fields(tc.opened) {
				p.breaker(t, name).ForceOpen("test")
				p.breaker(t, name).Release()
			}
			time.Sleep(time.Minute)
			p.script("A", fault)
			p.script("B", fault)
			p.took()
			_, err = p.call(t.Context())
			require.ErrorIs(t, err, errDown)
			require.Equal(t, tc.hits, p.took(), name)
		}
	})
}

// B14, D065: with two levels a dead channel is skipped for all its models, and a bad
// model alone leaves the channel's others in use.
func TestB14_ADeadChannelIsSkippedForAllItsModels(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		policy := fragile()
		policy.Breaker.Scope = breaker.TwoLevel
		p := list(t, policy, "A|m1", "A|m2", "B|m1")
		p.script("A|m1", fault)
		_, err := p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A|m1 B|m1", p.took())
		_, err = p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "B|m1", p.took())
		require.Equal(t, []string{"A", "A|m1", "A|m2", "B", "B|m1"}, slices.Sorted(maps.Keys(maps.Collect(p.kit.Breakers()))))

		policy = steady()
		policy.Retry = retry.Off()
		policy.Breaker = &breaker.Config{Window: breaker.Window{Calls: 10}, MinCalls: 4, FailureRate: 0.75, Scope: breaker.TwoLevel, Jitter: breaker.NoJitter}
		p = list(t, policy, "A|m1", "A|m2")
		p.script("A|m1", fault)
		for range 4 {
			_, err := p.call(t.Context())
			require.NoError(t, err)
		}
		p.took()
		_, err = p.call(t.Context())
		require.NoError(t, err)
		require.Equal(t, "A|m2", p.took(), "half of the channel's calls are good")
	})
}
