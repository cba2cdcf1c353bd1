package holdfast_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// T1: contexts and timers are released when their attempt ends, not when the call
// does: over 20,000 attempts the heap and the goroutines stay flat (D047). In
// real time: what it looks at is the real heap.
func TestD047_ALongRowOfAttemptsLeavesNothing(t *testing.T) {
	p := quick()
	p.Breaker = breaker.Off()
	p.Retry = &retry.Policy{MaxAttempts: 20_000, Backoff: retry.NoWait(), Budget: retry.NoBudget()}
	p.Timeout = &timeout.Limits{Attempt: time.Hour}
	live := func() (heap uint64, goroutines int) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	var early, late uint64
	var before, after int
	attempts := 0
	s := answers(func(context.Context) error {
		switch attempts++; attempts {
		case 2_000:
			early, before = live()
		case 20_000:
			late, after = live()
		}
		return errDown
	})
	_, err := do(context.Background(), newKit(t, p), read, s)
	require.ErrorIs(t, err, errDown)
	require.Equal(t, 20_000, attempts)
	require.InDelta(t, float64(early), float64(late), 1<<20, "bytes on the heap")
	require.LessOrEqual(t, after, before+1, "goroutines; the runtime may have started one of its own")
}
