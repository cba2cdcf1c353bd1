package bulkhead

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestK1_InUseNeverPassesTheLimit runs many goroutines on real time: the races
// are the point, and a wait lasts microseconds.
func TestK1_InUseNeverPassesTheLimit(t *testing.T) {
	for name, c := range map[string]Config{
		"no queue":    {Limit: 3},
		"short queue": {Limit: 3, Queue: 4},
		"long queue":  {Limit: 2, Queue: 1000, MaxWait: time.Minute},
		"hasty":       {Limit: 1, Queue: 1000, MaxWait: 20 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			const workers, rounds = 16, 300
			b := newBulkhead(t, c)
			var inside, over, served, refused atomic.Int64
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for i := range rounds {
						ctx, cancel := context.WithCancel(context.Background())
						if i%3 == 0 {
							ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(40))*time.Microsecond)
						}
						p, err := b.Acquire(ctx)
						if err != nil {
							refused.Add(1)
							cancel()
							continue
						}
						served.Add(1)
						if inside.Add(1) > int64(c.Limit) || b.InUse() > c.Limit {
							over.Add(1)
						}
						runtime.Gosched()
						inside.Add(-1)
						for range 2 {
							go p.Release()
						}
						p.Release()
						cancel()
					}
				})
			}
			wg.Wait()
			require.Zero(t, over.Load())
			require.EqualValues(t, workers*rounds, served.Load()+refused.Load())
			require.Positive(t, served.Load())
			require.True(t, b.Idle(), "in use %d, waiting %d", b.InUse(), b.Waiting())
			release := hold(t, b, c.Limit) // not one permit is lost
			for range c.Limit {
				release()
			}
		})
	}
}

// TestK1_NobodyIsForgotten has everybody wait as long as it takes: a permit
// that is not handed on, or a waiter that is overlooked, hangs the test.
func TestK1_NobodyIsForgotten(t *testing.T) {
	for name, tc := range map[string]struct{ workers, limit, rounds int }{
		"a crowd": {workers: 32, limit: 2, rounds: 500},
		"a pair":  {workers: 2, limit: 1, rounds: 200_000}, // nobody else comes by to help
	} {
		t.Run(name, func(t *testing.T) {
			b := newBulkhead(t, Config{Limit: tc.limit, Queue: tc.workers})
			var wg sync.WaitGroup
			for range tc.workers {
				wg.Go(func() {
					for range tc.rounds {
						p, err := b.Acquire(context.Background())
						if err != nil {
							t.Error(err)
						}
						p.Release()
					}
				})
			}
			wg.Wait()
			require.True(t, b.Idle())
		})
	}
}

// TestAnAdaptiveLimitStaysInItsBounds books ends from many goroutines at once.
func TestAnAdaptiveLimitStaysInItsBounds(t *testing.T) {
	const workers, rounds, ceiling, least = 16, 2000, 12, 2
	b := newBulkhead(t, Config{Limit: ceiling, Queue: 8, Adaptive: Adaptive{Min: least}})
	var inside, over, moves, served atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range rounds {
				p, err := b.Acquire(context.Background())
				if err != nil {
					continue
				}
				served.Add(1)
				before := b.Limit()
				if inside.Add(1) > ceiling || before > ceiling || before < least {
					over.Add(1)
				}
				if i%5 == 0 {
					runtime.Gosched()
				}
				bad := i/200%2 == 1 // spans of trouble
				go p.Book(bad && rnd.IntN(2) == 0)
				p.Book(bad && rnd.IntN(2) == 0)
				if b.Limit() != before {
					moves.Add(1)
				}
				inside.Add(-1)
				p.Release()
			}
		})
	}
	wg.Wait()
	require.Zero(t, over.Load())
	require.Positive(t, moves.Load())
	require.True(t, b.Idle(), "in use %d, waiting %d", b.InUse(), b.Waiting())
	t.Logf("%d served, the limit moved about %d times", served.Load(), moves.Load())
	release := hold(t, b, b.Limit()) // not one permit is lost
	for range b.InUse() {
		release()
	}
}
