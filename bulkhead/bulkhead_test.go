package bulkhead

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newBulkhead(t *testing.T, c Config) *Bulkhead {
	t.Helper()
	b, err := New("b", c)
	require.NoError(t, err)
	return b
}

// hold takes n permits and returns what gives them back.
func hold(t *testing.T, b *Bulkhead, n int) (releaseOne func()) {
	t.Helper()
	permits := make([]Permit, n)
	for i := range permits {
		var err error
		permits[i], err = b.Acquire(context.Background())
		require.NoError(t, err)
	}
	return func() {
		permits[0].Release()
		permits = permits[1:]
	}
}

func requireFull(t *testing.T, err error, reason Reason) {
	t.Helper()
	require.ErrorIs(t, err, ErrFull)
	var full *FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, reason, full.Reason())
	require.Equal(t, "b", full.Key())
}

func TestK1_BeyondTheLimitIsRefused(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 2})
	release := hold(t, b, 2)
	require.Equal(t, 2, b.InUse())
	_, err := b.Acquire(t.Context())
	requireFull(t, err, QueueFull)
	require.EqualError(t, err, `bulkhead: "b" is full`)

	release()
	p, err := b.Acquire(t.Context())
	require.NoError(t, err)
	p.Release()
	release()
	require.True(t, b.Idle())
}

func TestK1_TheQueueIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5
		b := newBulkhead(t, Config{Limit: 1, Queue: n})
		release := hold(t, b, 1)
		var order []int
		enter := func(i int) {
			p, err := b.Acquire(t.Context())
			if err == nil {
				order = append(order, i)
				time.Sleep(time.Millisecond)
				p.Release()
			}
		}
		for i := range n {
			go enter(i)
			synctest.Wait()
			require.Equal(t, i+1, b.Waiting())
		}
		_, err := b.Acquire(t.Context())
		requireFull(t, err, QueueFull)

		release()
		require.Equal(t, 1, b.InUse(), "the permit was handed on, not freed")
		require.Equal(t, n-1, b.Waiting())
		go enter(n) // a newcomer does not pass those who wait
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, order)
		require.True(t, b.Idle())
	})
}

func TestK1_AWaitEndsWithMaxWaitOrTheContext(t *testing.T) {
	cause := errors.New("the attempt limit")
	for name, tc := range map[string]struct {
		maxWait time.Duration
		ctx     func() (context.Context, context.CancelFunc)
		after   time.Duration
		reason  Reason
		is      []error
	}{
		"MaxWait": {
			maxWait: 10 * time.Millisecond, after: 10 * time.Millisecond, reason: WaitedOut,
			ctx: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), time.Hour)
			},
		},
		"deadline": {
			after: 20 * time.Millisecond, reason: ContextEnded,
			is: []error{context.DeadlineExceeded, cause},
			ctx: func() (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(context.Background(), 20*time.Millisecond, cause)
			},
		},
		"deadline before MaxWait": {
			maxWait: time.Second, after: 20 * time.Millisecond, reason: ContextEnded,
			is: []error{context.DeadlineExceeded},
			ctx: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), 20*time.Millisecond)
			},
		},
		"cancel": {
			after: 30 * time.Millisecond, reason: ContextEnded,
			is: []error{context.Canceled, cause},
			ctx: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(context.Background())
				time.AfterFunc(30*time.Millisecond, func() { cancel(cause) })
				return ctx, func() { cancel(nil) }
			},
		},
		"done before": {
			maxWait: time.Second, reason: ContextEnded, is: []error{context.Canceled},
			ctx: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				return ctx, cancel
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBulkhead(t, Config{Limit: 1, Queue: 1, MaxWait: tc.maxWait})
				release := hold(t, b, 1)
				ctx, cancel := tc.ctx()
				defer cancel()
				start := time.Now()
				p, err := b.Acquire(ctx)
				require.Equal(t, tc.after, time.Since(start))
				requireFull(t, err, tc.reason)
				for _, target := range tc.is {
					require.ErrorIs(t, err, target)
				}
				if tc.is == nil {
					require.NoError(t, errors.Unwrap(err))
				}
				require.Regexp(t, `^bulkhead: "b" is full, no permit `, err.Error())
				p.Release() // stands for nothing
				require.Equal(t, 1, b.InUse())
				require.Zero(t, b.Waiting())
				release()
				require.True(t, b.Idle())
			})
		})
	}
}

func TestD055_AWaiterThatGaveUpGetsNoPermit(t *testing.T) {
	// Also K1.
	const capacity, waiters = 8, 100
	for name, ctx := range map[string]func() (context.Context, context.CancelFunc){
		"MaxWait": func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) },
		"context": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 5*time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBulkhead(t, Config{Limit: capacity, Queue: waiters, MaxWait: 10 * time.Millisecond})
				for range 20 {
					release := hold(t, b, capacity)
					var wg sync.WaitGroup
					for range waiters {
						wg.Go(func() {
							ctx, cancel := ctx()
							defer cancel()
							if _, err := b.Acquire(ctx); err == nil {
								t.Error("got a permit that nobody gave back")
							}
						})
					}
					synctest.Wait()
					require.Equal(t, waiters, b.Waiting())
					wg.Wait()
					require.Zero(t, b.Waiting())
					for range capacity {
						release()
					}
					release = hold(t, b, capacity)
					for range capacity {
						release()
					}
					require.True(t, b.Idle())
				}
			})
		})
	}
}

func TestD055_APermitGrantedAsTheWaiterGivesUpIsPassedOn(t *testing.T) {
	// Also K1. The permit comes back, and the first waiter's context or MaxWait
	// ends, at the same instant of virtual time; the runtime picks the order.
	synctest.Test(t, func(t *testing.T) {
		const rounds = 200
		served := 0
		for round := range rounds {
			b := newBulkhead(t, Config{Limit: 1, Queue: 2, MaxWait: 10 * time.Millisecond})
			release := hold(t, b, 1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if round%2 == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
			}
			time.AfterFunc(10*time.Millisecond, release)
			var wg sync.WaitGroup
			wg.Go(func() {
				if p, err := b.Acquire(ctx); err == nil {
					served++
					p.Release()
				}
			})
			synctest.Wait()
			wg.Go(func() {
				time.Sleep(time.Millisecond) // so its own MaxWait is over later
				p, err := b.Acquire(t.Context())
				if err != nil {
					t.Errorf("round %d: the permit is lost: %v", round, err)
				}
				p.Release()
			})
			wg.Wait()
			cancel()
			require.True(t, b.Idle())
		}
		t.Logf("the first waiter was served in %d of %d rounds", served, rounds)
	})
}

func TestD055_AGrantToADeadContextIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBulkhead(t, Config{Limit: 1, Queue: 2})
		release := hold(t, b, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var first error
		go func() { _, first = b.Acquire(ctx) }()
		synctest.Wait()
		var second error
		go func() {
			var p Permit
			p, second = b.Acquire(t.Context())
			p.Release()
		}()
		synctest.Wait()
		release() // the grant and the cancel are both there when the waiter wakes
		cancel()
		synctest.Wait()
		requireFull(t, first, ContextEnded)
		require.NoError(t, second)
		require.True(t, b.Idle())
	})
}

func TestD056_ReleaseCountsOnce(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 3})
	release := hold(t, b, 2)
	p, err := b.Acquire(t.Context())
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				p.Release()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2, b.InUse())
	release()
	release()
	require.Zero(t, b.InUse())

	var none Permit
	none.Release()
	require.Zero(t, b.InUse())
}

func TestD058_LimitsAsLargeAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBulkhead(t, Config{Limit: 1, Queue: math.MaxInt})
		running, most, done := 0, 0, 0
		for range 10 {
			go func() {
				p, err := b.Acquire(t.Context())
				if err == nil {
					running++
					most = max(most, running)
					time.Sleep(time.Millisecond)
					running--
					done++
					p.Release()
				}
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 10, done)
		require.Equal(t, 1, most)
		require.True(t, b.Idle())
	})
	var b *Bulkhead
	bytes := testing.Benchmark(func(tb *testing.B) {
		tb.ReportAllocs()
		for tb.Loop() {
			b, _ = New("b", Config{Limit: math.MaxInt, Queue: math.MaxInt, MaxWait: math.MaxInt64})
		}
	}).AllocedBytesPerOp()
	require.Less(t, bytes, int64(512))
	release := hold(t, b, 1000)
	require.Equal(t, 1000, b.InUse())
	for range 1000 {
		release()
	}
	require.True(t, b.Idle())
}

func TestD059_BadConfigsAreNamed(t *testing.T) {
	for want, c := range map[string]Config{
		"bulkhead: Limit = 0: must be at least 1; bulkhead.Off() limits nothing":                                                                         {},
		"bulkhead: Limit = -1: must be at least 1; bulkhead.Off() limits nothing":                                                                        {Limit: -1},
		"bulkhead: Queue = -1: must not be negative; 0 is no queue":                                                                                      {Limit: 1, Queue: -1},
		"bulkhead: MaxWait = -1s: must not be negative; 0 waits as long as the context lasts":                                                            {Limit: 1, Queue: 1, MaxWait: -time.Second},
		"bulkhead: MaxWait = 1s: has no effect without a Queue":                                                                                          {Limit: 1, MaxWait: time.Second},
		"bulkhead: Scope = scope(9): is not one of the scopes of package bulkhead":                                                                       {Limit: 1, Scope: 9},
		"bulkhead: bad configuration\n\tLimit = 0: must be at least 1; bulkhead.Off() limits nothing\n\tQueue = -2: must not be negative; 0 is no queue": {Queue: -2},
	} {
		b, err := New("b", c)
		require.EqualError(t, err, want)
		require.Nil(t, b)
	}
}

func TestOffLimitsNothingAndSurvivesCopying(t *testing.T) {
	c := *Off()
	require.True(t, c.IsOff())
	require.Empty(t, c.Check())
	b := newBulkhead(t, c)
	release := hold(t, b, 10_000)
	for range 10_000 {
		release()
	}
	require.False(t, (&Config{}).IsOff())
	require.False(t, (*Config)(nil).IsOff())
}

func TestResizeKeepsPermitsAndPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBulkhead(t, Config{Limit: 2, Queue: 5})
		release := hold(t, b, 2)
		var got atomic.Int32
		var keep [4]Permit
		for i := range keep {
			go func() {
				var err error
				if keep[i], err = b.Acquire(t.Context()); err == nil {
					got.Add(1)
				}
			}()
			synctest.Wait()
		}
		require.NoError(t, b.Resize(Config{Limit: 4, Queue: 5}))
		synctest.Wait()
		require.EqualValues(t, 2, got.Load(), "a higher limit lets waiters in at once")
		require.Equal(t, 4, b.InUse())
		require.Equal(t, 2, b.Waiting())

		require.NoError(t, b.Resize(Config{Limit: 1, Queue: 1}))
		require.Equal(t, 2, b.Waiting(), "who waits keeps its place")
		release()
		release()
		keep[0].Release()
		synctest.Wait()
		require.Equal(t, 1, b.InUse())
		require.EqualValues(t, 2, got.Load(), "nobody enters before the lower limit is reached")
		keep[1].Release()
		synctest.Wait()
		require.EqualValues(t, 3, got.Load())
		keep[2].Release()
		synctest.Wait()
		require.EqualValues(t, 4, got.Load())
		keep[3].Release()
		require.True(t, b.Idle())

		require.Error(t, b.Resize(Config{}))
		_, err := b.Acquire(t.Context())
		require.NoError(t, err)
		_, err = b.Acquire(canceled(t))
		requireFull(t, err, ContextEnded) // the old config is in force
	})
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
