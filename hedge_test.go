package holdfast_test

import (
	"context"
	"errors"
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

// hedging is quick with a hedge after 10 ms.
func hedging() holdfast.Policy {
	p := quick()
	p.Retry.Hedge = retry.Hedge{Delay: 10 * time.Millisecond}
	return p
}

// after takes d, unless its context ends first, and then goes on.
func after(d time.Duration, then func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return then(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lanes are a dependency whose n-th attempt takes its n-th step and answers its
// number.
type lanes struct {
	mu    sync.Mutex
	hits  int
	ends  []error // of the attempts, in the order of their ends
	steps []func(context.Context) error
}

func laneSteps(steps ...func(context.Context) error) *lanes { return &lanes{steps: steps} }

func (l *lanes) call(ctx context.Context) (int, error) {
	l.mu.Lock()
	l.hits++
	n := l.hits
	step := l.steps[min(n, len(l.steps))-1]
	l.mu.Unlock()
	err := step(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, err)
	return n, err
}

const ms = time.Millisecond

// R10, D082: the first acceptable answer wins, errors are held back while others
// run, and if all fail the first attempt's error comes back.
func TestD082_TheFirstAcceptableAnswerWins(t *testing.T) {
	errLate := errors.New("the hedge is down too")
	late := func(context.Context) error { return errLate }
	missing := errors.New("no such row")
	for name, tc := range map[string]struct {
		steps []func(context.Context) error
		hits  int
		won   int // 0: an error
		err   error
		took  time.Duration
	}{
		"the first is quick":                      {[]func(context.Context) error{after(9*ms, ok)}, 1, 1, nil, 9 * ms},
		"the first is slow, the hedge quick":      {[]func(context.Context) error{after(90*ms, ok), after(5*ms, ok)}, 2, 2, nil, 15 * ms},
		"the first is slow, the hedge slower":     {[]func(context.Context) error{after(50*ms, ok), after(60*ms, ok)}, 2, 1, nil, 50 * ms},
		"the first fails, then the hedge is good": {[]func(context.Context) error{after(15*ms, down), after(50*ms, ok)}, 2, 2, nil, 60 * ms},
		"the hedge fails, then the first is good": {[]func(context.Context) error{after(50*ms, ok), after(5*ms, down)}, 2, 1, nil, 50 * ms},
		"both fail":                   {[]func(context.Context) error{after(15*ms, down), after(50*ms, late)}, 2, 0, errDown, 60 * ms},
		"both fail, the hedge first":  {[]func(context.Context) error{after(50*ms, down), after(5*ms, late)}, 2, 0, errDown, 50 * ms},
		"a client fault is an answer": {[]func(context.Context) error{after(90*ms, ok), after(5*ms, func(context.Context) error { return missing })}, 2, 0, missing, 15 * ms},
		"the first fails before the delay: a retry, which is hedged again": {
			[]func(context.Context) error{after(5*ms, down), after(90*ms, ok), after(5*ms, ok)}, 3, 3, nil, (5 + 10 + 10 + 5) * ms,
		},
		"all within MaxAttempts": {
			[]func(context.Context) error{after(5*ms, down), after(5*ms, down), after(90*ms, ok), after(5*ms, ok)}, 3, 3, nil, (5 + 10 + 5 + 10 + 90) * ms,
		},
		"the limit of an attempt": {[]func(context.Context) error{silent, after(95*ms, ok)}, 2, 2, nil, 105 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := hedging()
				p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result {
					if errors.Is(res.Err, missing) {
						res.Class = call.ClientFault
					}
					return res
				}
				l, begin := laneSteps(tc.steps...), time.Now()
				got, err := holdfast.Do(t.Context(), newKit(t, p), read, l.call)
				require.Equal(t, tc.hits, l.hits)
				require.Equal(t, tc.took, time.Since(begin))
				require.Len(t, l.ends, l.hits, "all have returned")
				if tc.won > 0 {
					require.NoError(t, err)
					require.Equal(t, tc.won, got)
					return
				}
				require.Equal(t, tc.err, err, "unmarked: its attempts were made")
			})
		})
	}
}

// R10: what is not hedged. The first attempt takes 50 ms, the second nothing.
func TestR10_WhatIsNotHedged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*holdfast.Policy)
		info   call.Info
		ready  func(*testing.T, *holdfast.Kit)
		hits   int
	}{
		"a read is":                 {nil, read, nil, 2},
		"an idempotent call is":     {nil, call.Info{Target: "db", Safety: call.Idempotent}, nil, 2},
		"an unsafe call":            {nil, call.Info{Target: "db", Safety: call.Unsafe}, nil, 1},
		"an undeclared call":        {nil, call.Info{Target: "db"}, nil, 1},
		"an unsafe call with a key": {func(p *holdfast.Policy) { p.Retry.IdempotencyKey = true }, call.Info{Target: "db", Safety: call.Unsafe}, nil, 1},
		"no hedge set":              {func(p *holdfast.Policy) { p.Retry.Hedge = retry.Hedge{} }, read, nil, 1},
		"retry off":                 {func(p *holdfast.Policy) { p.Retry = retry.Off() }, read, nil, 1},
		"no time for it":            {func(p *holdfast.Policy) { p.Timeout = &timeout.Limits{Total: 60 * ms, Floor: 51 * ms} }, read, nil, 1},
		"a full bulkhead":           {func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 10} }, read, nil, 1},
		"an open breaker": {nil, read, func(t *testing.T, k *holdfast.Kit) {
			time.AfterFunc(5*ms, func() { open(t, k) })
		}, 1},
		"a spent budget": {func(p *holdfast.Policy) { p.Retry.Budget = retry.Budget{Initial: 0.5, Share: 1e-9, PerSecond: 1e-6} }, read, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := hedging()
				if tc.change != nil {
					tc.change(&p)
				}
				k := newKit(t, p)
				if tc.ready != nil {
					tc.ready(t, k)
				}
				l := laneSteps(after(50*ms, ok), ok)
				got, err := holdfast.Do(t.Context(), k, tc.info, l.call)
				require.NoError(t, err)
				require.Equal(t, tc.hits, got)
				require.Equal(t, tc.hits, l.hits)
			})
		})
	}
	t.Run("nested in another call", func(t *testing.T) { // R8
		synctest.Test(t, func(t *testing.T) {
			inner, outer := newKit(t, hedging()), newKit(t, quick())
			l := laneSteps(after(50*ms, ok), ok)
			_, err := holdfast.Do(t.Context(), outer, read, func(ctx context.Context) (int, error) {
				return holdfast.Do(ctx, inner, read, l.call)
			})
			require.NoError(t, err)
			require.Equal(t, 1, l.hits)
		})
	})
}

// K3: a call that may be hedged and finds the bulkhead full is refused like any
// other, and nobody has cancelled it.
func TestK3_AFullBulkheadRefusesACallThatMayBeHedged(t *testing.T) {
	for name, queue := range map[string]bulkhead.Config{
		"no queue": {Limit: 1}, "a queue": {Limit: 1, Queue: 1, MaxWait: 5 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := hedging()
				p.Bulkhead, p.Timeout = &queue, timeout.Off()
				k := newKit(t, p)
				held := laneSteps(after(time.Second, func(context.Context) error { return nil }))
				var calls sync.WaitGroup
				var first error
				calls.Go(func() { _, first = holdfast.Do(t.Context(), k, read, held.call) })
				synctest.Wait()
				_, err := holdfast.Do(t.Context(), k, read, held.call)
				require.ErrorIs(t, err, bulkhead.ErrFull)
				require.NotErrorIs(t, err, context.Canceled)
				calls.Wait()
				require.NoError(t, first)
				require.Equal(t, 1, held.hits)
			})
		})
	}
}

// R10: a hedge does not stand in the bulkhead's queue, and a token is not spent
// on one that cannot be sent.
func TestR10_AHedgeThatIsNotSentCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 10}
		p.Retry.Budget = retry.Budget{Initial: 1, Cap: 1, Share: 1e-9, PerSecond: 1e-6}
		k := newKit(t, p)
		for range 5 {
			_, err := holdfast.Do(t.Context(), k, read, laneSteps(after(50*ms, ok)).call)
			require.NoError(t, err)
		}
		l := laneSteps(down, ok)
		_, err := holdfast.Do(t.Context(), k, read, l.call)
		require.NoError(t, err, "the token is still there for a retry")
		require.Equal(t, 2, l.hits)
	})
}

// R10: n extra attempts, a delay apart, within MaxAttempts.
func TestR10_SeveralHedges(t *testing.T) {
	for extra, want := range map[int]int{1: 2, 2: 3, 3: 4} {
		synctest.Test(t, func(t *testing.T) {
			p := hedging()
			p.Retry.MaxAttempts = 4
			p.Retry.Hedge.Extra = extra
			l := laneSteps(after(50*ms, ok))
			got, err := holdfast.Do(t.Context(), newKit(t, p), read, l.call)
			require.NoError(t, err)
			require.Equal(t, 1, got)
			require.Equal(t, want, l.hits)
		})
	}
	synctest.Test(t, func(t *testing.T) { // a dependency that is overloaded gets no more of them
		p := hedging()
		p.Retry.MaxAttempts, p.Retry.Hedge.Extra = 4, 3
		p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result {
			if res.Class == call.ServerFault {
				res.Class = call.Throttled
			}
			return res
		}
		l := laneSteps(after(50*ms, ok), after(5*ms, down))
		_, err := holdfast.Do(t.Context(), newKit(t, p), read, l.call)
		require.NoError(t, err)
		require.Equal(t, 2, l.hits)
	})
}

// D083: a half-open breaker's probe is neither hedged nor repeated, and a hedge
// never becomes one.
func TestD083_AProbeIsNotHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, hedging())
		open(t, k)
		time.Sleep(time.Second)
		l := laneSteps(after(90*ms, down), ok)
		_, err := holdfast.Do(t.Context(), k, read, l.call)
		require.Equal(t, errDown, err)
		require.Equal(t, 1, l.hits)
		_, err = holdfast.Do(t.Context(), k, read, l.call)
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Retry.Hedge.Delay = 1500 * ms
		p.Timeout = timeout.Off()
		k := newKit(t, p)
		time.AfterFunc(5*ms, func() { open(t, k) }) // half-open when the hedge is due
		l := laneSteps(after(2*time.Second, ok), ok)
		got, err := holdfast.Do(t.Context(), k, read, l.call)
		require.NoError(t, err)
		require.Equal(t, 1, got)
		require.Equal(t, 1, l.hits)
		_, err = holdfast.Do(t.Context(), k, read, laneSteps(ok).call)
		require.NoError(t, err, "the probe's slot is free")
	})
}

// D083: a probe is not hedged either if another one has closed the breaker.
func TestD083_AProbeStaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Breaker.Probes = 2
		k := newKit(t, p)
		open(t, k)
		time.Sleep(time.Second)
		time.AfterFunc(5*ms, func() { _, _ = holdfast.Do(t.Context(), k, read, laneSteps(ok).call) })
		l := laneSteps(after(50*ms, ok), ok)
		_, err := holdfast.Do(t.Context(), k, read, l.call)
		require.NoError(t, err)
		require.Equal(t, 1, l.hits)
	})
}

// R1: hedges and repeats together stay within MaxAttempts, and within Floor.
func TestR10_HedgesStayWithinTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Retry.Hedge.Extra = 2
		l := laneSteps(after(5*ms, down), after(90*ms, ok))
		_, err := holdfast.Do(t.Context(), newKit(t, p), read, l.call)
		require.NoError(t, err)
		require.Equal(t, 3, l.hits)
	})
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Retry.Hedge = retry.Hedge{Delay: 20 * ms, Extra: 2}
		p.Timeout = &timeout.Limits{Total: 60 * ms, Floor: 35 * ms}
		l := laneSteps(after(50*ms, ok))
		_, err := holdfast.Do(t.Context(), newKit(t, p), read, l.call)
		require.NoError(t, err)
		require.Equal(t, 2, l.hits, "the second hedge would begin too late")
	})
}

// D084, R6: hedges draw on the budget.
func TestD084_HedgesDrawOnTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging()
		p.Retry.Budget = retry.Budget{Share: 0.1, PerSecond: 1e-6, Initial: 10}
		k, l := newKit(t, p), laneSteps(after(90*ms, ok))
		for range 1_000 {
			_, err := holdfast.Do(t.Context(), k, read, l.call)
			require.NoError(t, err)
		}
		require.LessOrEqual(t, l.hits, 1_000+100+10)
		require.GreaterOrEqual(t, l.hits, 1_000+100)
	})
}
