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
	epoch  int // in which it was admitted
	booked bool
}

// reference is what a limit should be, told by the list of a window's ends.
type reference struct {
	c      Config
	limit  int
	epoch  int
	window []bool // whether each end failed
}

func (r *reference) resize(c Config) {
	was := r.c
	switch {
	case c.Adaptive.Min == 0:
		r.limit = c.Limit
	case was.Adaptive.Min == 0:
		r.epoch++
		r.limit = c.Adaptive.withDefaults(c.Limit).Start
	case r.limit == was.Limit:
		r.limit = c.Limit
	default:
		r.limit = max(c.Adaptive.Min, min(r.limit, c.Limit))
	}
	r.c, r.window = c, nil
}

func (r *reference) book(a *attempt, failed bool) {
	adaptive := r.c.Adaptive.withDefaults(r.c.Limit)
	if adaptive.Min == 0 || a.booked || a.epoch != r.epoch {
		return
	}
	if !failed && len(r.window) == 0 && r.limit == r.c.Limit {
		return // a window begins with a failure there
	}
	r.window = append(r.window, failed)
	bad := 0
	for _, failed := range r.window {
		if failed {
			bad++
		}
	}
	switch was := r.limit; {
	case float64(bad)/float64(r.limit) > adaptive.Tolerance:
		r.limit = max(int(float64(r.limit)*adaptive.Decrease), adaptive.Min)
		if r.limit < was {
			r.epoch++
		}
		r.window = nil
	case len(r.window) == r.limit:
		r.limit, r.window = min(r.limit+adaptive.Increase, r.c.Limit), nil
	}
}

// TestK1_ABulkheadIsALimitAndAQueue drives a bulkhead with random acquires,
// releases, cancels, passing time, resizes and, where the limit is adaptive,
// booked ends. It holds it after each step against two lists, who runs and who
// waits, and a limit.
func TestK1_ABulkheadIsALimitAndAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, checkModel) })
}

func checkModel(t *rapid.T) {
	draw := func(t *rapid.T) Config {
		c := Config{Limit: rapid.IntRange(1, 8).Draw(t, "limit"), Queue: rapid.IntRange(0, 4).Draw(t, "queue")}
		if c.Queue > 0 {
			c.MaxWait = time.Duration(rapid.SampledFrom([]int{0, 5, 20}).Draw(t, "MaxWait")) * time.Millisecond
		}
		if rapid.Bool().Draw(t, "adaptive") {
			least := rapid.IntRange(1, c.Limit).Draw(t, "min")
			c.Adaptive = Adaptive{
				Min: least, Start: rapid.IntRange(least, c.Limit).Draw(t, "start"),
				Increase:  rapid.IntRange(0, 3).Draw(t, "increase"),
				Decrease:  rapid.SampledFrom([]float64{0, 0.25, 0.75}).Draw(t, "decrease"),
				Tolerance: rapid.SampledFrom([]float64{0, 1e-9, 0.5}).Draw(t, "tolerance"),
			}
		}
		return c
	}
	c := draw(t)
	b, err := New("b", c)
	require.NoError(t, err)
	ref := reference{}
	ref.resize(c)
	var running, queue []*attempt
	waits := map[*attempt]time.Duration{} // the MaxWait in force when it joined
	admit := func() {
		for len(queue) > 0 && len(running) < ref.limit {
			queue[0].epoch = ref.epoch
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
			case len(queue) == 0 && len(running) < ref.limit:
				a.epoch = ref.epoch
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
		"end": func(t *rapid.T) {
			if len(running) == 0 {
				t.Skip("nobody runs")
			}
			failed := rapid.Bool().Draw(t, "failed")
			for range rapid.IntRange(1, len(running)).Draw(t, "how many") {
				a := running[0]
				a.permit.Book(failed)
				a.permit.Book(!failed)
				ref.book(a, failed)
				a.booked = true
				admit()
				synctest.Wait()
				if rapid.Bool().Draw(t, "release") {
					a.permit.Release()
					running = running[1:]
					admit()
					synctest.Wait()
				}
			}
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
			ref.resize(c)
			admit()
		},
		"": func(t *rapid.T) {
			synctest.Wait()
			require.Equal(t, ref.limit, b.Limit())
			require.LessOrEqual(t, b.Limit(), c.Limit)
			require.GreaterOrEqual(t, b.Limit(), c.Adaptive.Min)
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
