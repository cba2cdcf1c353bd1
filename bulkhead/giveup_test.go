package bulkhead

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestD055_AWaiterThatGaveUpGetsNoPermit(t *testing.T) {
	// Also K1.
	const capacity, waiters = 8, 100
	for name, leaves := range map[string]time.Duration{"MaxWait": time.Hour, "context": 5 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBulkhead(t, Config{Limit: capacity, Queue: waiters, MaxWait: 10 * time.Millisecond})
				for range 200 {
					release := hold(t, b, capacity)
					var wg sync.WaitGroup
					for range waiters {
						wg.Go(func() {
							ctx, cancel := context.WithTimeout(context.Background(), leaves)
							defer cancel()
							if _, err := b.Acquire(ctx); err == nil {
								t.Error("got a permit that nobody gave back")
							}
						})
					}
					synctest.Wait()
					require.Equal(t, waiters, b.Waiting())
					begin := time.Now()
					wg.Wait()
					require.Equal(t, min(leaves, 10*time.Millisecond), time.Since(begin))
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
