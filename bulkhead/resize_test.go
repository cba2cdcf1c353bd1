package bulkhead

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

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
