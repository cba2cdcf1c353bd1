package bulkhead

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// attempt is one user of the bulkhead in the model test.
type attempt struct {
	cancel context.CancelFunc
	permit Permit
	err    error
	done   atomic.Bool
	since  time.Time
}

// TestK1_ABulkheadIsALimitAndAQueue drives a bulkhead with random acquires,
// releases, cancels, passing time and resizes, and holds it after each step
// against two lists: who runs and who waits.
func TestK1_ABulkheadIsALimitAndAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, checkModel) })
}

func checkModel(t *rapid.T) {
	draw := func(t *rapid.T) Config {
		c := Config{Limit: rapid.IntRange(1, 4).Draw(t, "limit"), Queue: rapid.IntRange(0, 4).Draw(t, "queue")}
		if c.Queue > 0 {
			c.MaxWait = time.Duration(rapid.SampledFrom([]int{0, 5, 20}).Draw(t, "MaxWait")) * time.Millisecond
		}
		return c
	}
	c := draw(t)
	b, err := New("b", c)
	require.NoError(t, err)
	var running, queue []*attempt
	waits := map[*attempt]time.Duration{} // the MaxWait in force when it joined
	admit := func() {
		for len(queue) > 0 && len(running) < c.Limit {
			running, queue = append(running, queue[0]), queue[1:]
		}
	}
	gone := func(a *attempt, reason Reason) {
		require.True(t, a.done.Load())
		var full *FullError
		require.True(t, errors.As(a.err, &full))
		require.Equal(t, reason, full.Reason())
	}
	defer func() {
		for _, a := range slices.Concat(running, queue) {
			a.cancel()
			synctest.Wait()
			a.permit.Release()
		}
		synctest.Wait()
		for _, a := range slices.Concat(running, queue) {
			a.permit.Release()
		}
		require.True(t, b.Idle())
	}()
	t.Repeat(map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			ctx, cancel := context.WithCancel(context.Background())
			a := &attempt{cancel: cancel, since: time.Now()}
			go func() {
				a.permit, a.err = b.Acquire(ctx)
				a.done.Store(true)
			}()
			synctest.Wait()
			switch {
			case len(queue) == 0 && len(running) < c.Limit:
				running = append(running, a)
			case len(queue) < c.Queue:
				queue, waits[a] = append(queue, a), c.MaxWait
			default:
				gone(a, QueueFull)
			}
		},
		"release": func(t *rapid.T) {
			if len(running) == 0 {
				t.Skip("nobody runs")
			}
			i := rapid.IntRange(0, len(running)-1).Draw(t, "who")
			running[i].permit.Release()
			running[i].permit.Release()
			running = slices.Delete(running, i, i+1)
			admit()
		},
		"cancel": func(t *rapid.T) {
			if len(queue) == 0 {
				t.Skip("nobody waits")
			}
			i := rapid.IntRange(0, len(queue)-1).Draw(t, "who")
			a := queue[i]
			a.cancel()
			synctest.Wait()
			gone(a, ContextEnded)
			queue = slices.Delete(queue, i, i+1)
		},
		"time": func(t *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 10).Draw(t, "ms")) * time.Millisecond)
			synctest.Wait()
			queue = slices.DeleteFunc(queue, func(a *attempt) bool {
				over := waits[a] > 0 && time.Since(a.since) >= waits[a]
				if over {
					gone(a, WaitedOut)
				}
				return over
			})
		},
		"resize": func(t *rapid.T) {
			c = draw(t)
			require.NoError(t, b.Resize(c))
			admit()
		},
		"": func(t *rapid.T) {
			synctest.Wait()
			require.Equal(t, len(running), b.InUse())
			require.Equal(t, len(queue), b.Waiting())
			require.Equal(t, len(running)+len(queue) == 0, b.Idle())
			for _, a := range running {
				require.True(t, a.done.Load())
				require.NoError(t, a.err)
			}
			for _, a := range queue {
				require.False(t, a.done.Load())
			}
		},
	})
}
