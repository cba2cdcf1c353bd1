package holdfast_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// A long outage leaves nothing behind: after a million attempts that failed, and a
// million calls that were refused, the heap is as it was, and no goroutine is left. In
// real time, for what the collector finds.
func TestAMillionAttemptsInAnOutageLeaveNothing(t *testing.T) {
	const attempts, callers = 1_000_000, 8
	config := breaker.Config{
		Window: breaker.Window{Span: time.Minute}, FailureRate: 0.5,
		SlowCall: time.Second, Stall: breaker.Stall{After: time.Second, Calls: 1000},
	}
	shadow, open := config, config
	shadow.Shadow = true // it measures, opens and probes as ever, and every attempt is made
	open.Cooldown, open.MaxCooldown = time.Hour, time.Hour
	k, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Retry:    &retry.Policy{MaxAttempts: 4, Backoff: retry.NoWait(), Budget: retry.NoBudget()},
			Timeout:  &timeout.Limits{Total: time.Minute, Attempt: 10 * time.Second},
			Bulkhead: &bulkhead.Config{Limit: callers},
		},
		Methods: map[string]holdfast.Policy{"made": {Breaker: &shadow}, "refused": {Breaker: &open}},
	})
	require.NoError(t, err)
	k.Count()

	var made atomic.Int64
	outage := func(method string, calls int) {
		var working sync.WaitGroup
		for range callers {
			working.Go(func() {
				for range calls / callers {
					_, err := holdfast.Do(context.Background(), k, call.Info{Target: "db", Method: method, Safety: call.ReadOnly},
						func(context.Context) (int, error) { made.Add(1); return 0, errDown })
					if err == nil {
						panic("the dependency is down")
					}
				}
			})
		}
		working.Wait()
	}
	heap := func() int64 {
		var m runtime.MemStats
		for range 2 { // the first one may leave what it has to finalize
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	outage("made", 1000) // what is made once is there
	outage("refused", 1000)
	goroutines, before := runtime.NumGoroutine(), heap()
	made.Store(0)

	outage("made", attempts/4)
	require.EqualValues(t, attempts, made.Load())
	outage("refused", attempts)
	require.EqualValues(t, attempts, made.Load(), "none of these was made")

	require.Less(t, heap()-before, int64(100<<10), "bytes for two million ends")
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	for _, b := range k.Breakers() {
		require.Zero(t, b.Counts().Unanswered)
	}
	for _, b := range k.Bulkheads() {
		require.Zero(t, b.InUse())
	}
}
