package bulkhead

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// both returns the two bulkheads of a two-level config.
func both(t testing.TB, c Config) (method, target *Bulkhead) {
	t.Helper()
	c.Scope = TwoLevel
	method, err := New("b|m", c.ForMethod())
	require.NoError(t, err)
	target, err = New("b", c)
	require.NoError(t, err)
	return method, target
}

func TestTwoLevelConfigs(t *testing.T) {
	c := Config{Limit: 9, Queue: 3, MaxWait: time.Second, Scope: TwoLevel, Adaptive: Adaptive{Min: 2, Start: 7}}
	require.NoError(t, c.Check())
	want := Config{Limit: 5, Queue: 3, MaxWait: time.Second, Scope: PerMethod, Adaptive: Adaptive{Min: 2, Start: 5}}
	require.Equal(t, want, c.ForMethod())
	require.NoError(t, want.Check())
	c.MethodLimit = 9
	require.Equal(t, 9, c.ForMethod().Limit)
	require.Equal(t, 1, Config{Limit: 1, Scope: TwoLevel}.ForMethod().Limit)
	off := Off().ForMethod()
	require.True(t, off.IsOff())
	require.Equal(t, "two_level", TwoLevel.String())

	for want, c := range map[string]Config{
		"MethodLimit = 2: has no effect unless Scope is TwoLevel":             {Limit: 4, MethodLimit: 2},
		"MethodLimit = 5: must be in [1, Limit = 4], or 0 for half of Limit":  {Limit: 4, MethodLimit: 5, Scope: TwoLevel},
		"MethodLimit = -1: must be in [1, Limit = 4], or 0 for half of Limit": {Limit: 4, MethodLimit: -1, Scope: TwoLevel},
		"Adaptive.Min = 3: must not exceed MethodLimit = 2":                   {Limit: 4, Scope: TwoLevel, Adaptive: Adaptive{Min: 3}},
		"Limit = 0: must be at least 1; bulkhead.Off() limits nothing":        {Scope: TwoLevel, MethodLimit: 3},
	} {
		require.EqualError(t, c.Check(), "bulkhead: "+want)
	}
}

func TestAMethodThatHangsLeavesPermitsToTheOthers(t *testing.T) {
	slow, target := both(t, Config{Limit: 4})
	quick := newBulkhead(t, Config{Limit: 2})
	for range 2 {
		_, err := AcquireBoth(t.Context(), slow, target)
		require.NoError(t, err)
	}
	_, err := AcquireBoth(t.Context(), slow, target)
	require.EqualError(t, err, `bulkhead: "b|m" is full`)
	require.Equal(t, 2, target.InUse(), "it was not asked")
	p, err := AcquireBoth(t.Context(), quick, target)
	require.NoError(t, err)
	p.Release()
	p.Release()
	require.Equal(t, 2, target.InUse())
	require.Zero(t, quick.InUse())
}

func TestARefusalBySecondGivesTheFirstBack(t *testing.T) {
	method, target := both(t, Config{Limit: 4})
	release := hold(t, target, 4)
	for range 5 {
		_, err := AcquireBoth(t.Context(), method, target)
		requireFull(t, err, QueueFull)
		require.True(t, method.Idle())
	}
	release()
	p, err := AcquireBoth(t.Context(), method, target)
	require.NoError(t, err)
	require.Equal(t, 1, method.InUse())
	p.Release()
	require.True(t, method.Idle())
	require.Equal(t, 3, target.InUse())

	var none Pair
	none.Book(true)
	none.Release()
}

func TestEitherOfAPairMayBeMissing(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 1})
	for _, pair := range [][2]*Bulkhead{{nil, b}, {b, nil}} {
		p, err := AcquireBoth(t.Context(), pair[0], pair[1])
		require.NoError(t, err)
		_, err = AcquireBoth(t.Context(), pair[0], pair[1])
		requireFull(t, err, QueueFull)
		p.Book(true)
		p.Release()
		require.True(t, b.Idle())
	}
	p, err := AcquireBoth(t.Context(), nil, nil)
	require.NoError(t, err)
	p.Release()
}

func TestMaxWaitCoversBothWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			first time.Duration // when the method's permit comes
			after time.Duration
			key   string
		}{
			{60 * time.Millisecond, 100 * time.Millisecond, "b"},
			{time.Hour, 100 * time.Millisecond, "b|m"},
		} {
			method, target := both(t, Config{Limit: 2, Queue: 5, MaxWait: 100 * time.Millisecond})
			releaseMethod, releaseTarget := hold(t, method, 1), hold(t, target, 2)
			time.AfterFunc(tc.first, releaseMethod)
			start := time.Now()
			_, err := AcquireBoth(t.Context(), method, target)
			require.Equal(t, tc.after, time.Since(start))
			var full *FullError
			require.ErrorAs(t, err, &full)
			require.Equal(t, WaitedOut, full.Reason())
			require.Equal(t, tc.key, full.Key())
			time.Sleep(2 * time.Hour)
			require.True(t, method.Idle())
			releaseTarget()
			releaseTarget()
			require.True(t, target.Idle())
		}
	})
}

func TestWhomThePairsReleaseLetsInFindsTheTargetFree(t *testing.T) {
	method, target := both(t, Config{Limit: 2, Queue: 1})
	p, err := AcquireBoth(t.Context(), method, target)
	require.NoError(t, err)
	release := hold(t, target, 1)
	queued := make(chan error)
	go func() {
		q, err := target.Acquire(context.Background())
		q.Release()
		queued <- err
	}()
	for target.Waiting() == 0 {
		runtime.Gosched()
	}
	// Whoever returns a permit of target while somebody waits needs its lock.
	target.mu.Lock()
	released := make(chan struct{})
	go func() { p.Release(); close(released) }()
	for target.InUse() == 2 {
		runtime.Gosched()
	}
	inUse := method.InUse()
	target.mu.Unlock()
	require.Equal(t, 1, inUse, "the method's permit comes back last")
	<-released
	require.NoError(t, <-queued)
	release()
	require.True(t, method.Idle() && target.Idle())
}

func TestAPairBooksOnBoth(t *testing.T) {
	method, target := both(t, Config{Limit: 8, Adaptive: Adaptive{Min: 1}})
	p, err := AcquireBoth(t.Context(), method, target)
	require.NoError(t, err)
	p.Book(true)
	require.Equal(t, 2, method.Limit())
	require.Equal(t, 4, target.Limit())
}

// TestPairsNeverLoseAPermit has random pairs of three methods come, wait, give
// up and go, and holds every bulkhead against the pairs that run.
func TestPairsNeverLoseAPermit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, checkPairs) })
}

func checkPairs(t *rapid.T) {
	c := Config{
		Limit: rapid.IntRange(1, 6).Draw(t, "limit"), Scope: TwoLevel,
		Queue: rapid.IntRange(0, 3).Draw(t, "queue"), Adaptive: Adaptive{Min: 1, Tolerance: 0.5},
	}
	c.MethodLimit = rapid.IntRange(1, c.Limit).Draw(t, "method limit")
	target, err := New("b", c)
	require.NoError(t, err)
	var methods [3]*Bulkhead
	for i := range methods {
		methods[i], err = New("b|m", c.ForMethod())
		require.NoError(t, err)
	}
	type holder struct {
		method  int
		pair    Pair
		ended   bool
		holding bool
		cancel  context.CancelFunc
	}
	var all []*holder
	of := func(is func(*holder) bool) (found []*holder) {
		for _, h := range all {
			if is(h) {
				found = append(found, h)
			}
		}
		return found
	}
	defer func() {
		for _, h := range all {
			h.cancel()
		}
		synctest.Wait()
		for _, h := range all {
			h.pair.Release()
		}
		for _, b := range append(methods[:], target) {
			require.True(t, b.Idle())
		}
	}()
	pick := func(t *rapid.T, from []*holder) *holder {
		if len(from) == 0 {
			t.Skip("none")
		}
		return rapid.SampledFrom(from).Draw(t, "who")
	}
	t.Repeat(map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			h := &holder{method: rapid.IntRange(0, 2).Draw(t, "method")}
			var ctx context.Context
			ctx, h.cancel = context.WithCancel(context.Background())
			all = append(all, h)
			go func() {
				var err error
				h.pair, err = AcquireBoth(ctx, methods[h.method], target)
				h.holding, h.ended = err == nil, true
			}()
		},
		"give up": func(t *rapid.T) { pick(t, of(func(h *holder) bool { return !h.ended })).cancel() },
		"release": func(t *rapid.T) {
			h := pick(t, of(func(h *holder) bool { return h.holding }))
			if rapid.Bool().Draw(t, "book") {
				h.pair.Book(rapid.Bool().Draw(t, "failed"))
			}
			h.pair.Release()
			h.pair.Release()
			h.holding = false
		},
		"": func(t *rapid.T) {
			synctest.Wait()
			running := of(func(h *holder) bool { return h.holding })
			require.Equal(t, len(running), target.InUse())
			require.LessOrEqual(t, target.InUse(), c.Limit)
			inQueue := target.Waiting()
			for i, b := range methods {
				inQueue += b.Waiting()
				require.LessOrEqual(t, b.InUse(), c.MethodLimit)
				mine := of(func(h *holder) bool { return h.method == i && h.holding })
				require.GreaterOrEqual(t, b.InUse(), len(mine))
				require.LessOrEqual(t, b.InUse(), len(mine)+target.Waiting(), "who holds one waits for the other")
			}
			require.Len(t, of(func(h *holder) bool { return !h.ended }), inQueue)
		},
	})
}

func TestAPairDoesNotAllocate(t *testing.T) {
	ctx := context.Background()
	method, target := both(t, Config{Limit: 2, Adaptive: Adaptive{Min: 1}})
	release := hold(t, target, 1)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p, _ := AcquireBoth(ctx, method, target)
		_, _ = AcquireBoth(ctx, method, target)
		p.Book(false)
		p.Release()
	}))
	p := take(t, target, 1)
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = AcquireBoth(ctx, method, target) }))
	end(p, false)
	release()
	require.True(t, method.Idle() && target.Idle())
}

// A pair that was moved holds the permits, and the one that it was holds none.
func TestAMovedPairHoldsThePermits(t *testing.T) {
	method, target := both(t, Config{Limit: 4})
	var first, second Pair
	require.True(t, first.Try(method, target))
	first.Move(&second)
	first.Book(true)
	first.Release()
	require.Equal(t, 1, method.InUse())
	require.Equal(t, 1, target.InUse())
	second.Release()
	second.Release()
	require.True(t, method.Idle() && target.Idle())
}
