package stripe

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNothingIsLostWhereManyCount(t *testing.T) {
	const counters, each = 16, 20_000
	var c Counter
	c.stripes.Store(new(Stripes))
	c.n.Store(7) // counted before they met
	var counting sync.WaitGroup
	begin, counted := make(chan struct{}), make(chan struct{})
	for range counters {
		counting.Go(func() {
			<-begin
			for range each {
				c.Add()
			}
		})
	}
	go func() {
		counting.Wait()
		close(counted)
	}()
	close(begin)
	for last, done := uint64(0), false; !done; {
		select {
		case <-counted:
			done = true
		default:
		}
		now := c.Load()
		require.GreaterOrEqual(t, now, last, "a counter never falls")
		last = now
	}
	c.AddN(5)
	require.EqualValues(t, 7+counters*each+5, c.Load())
	used := 0
	for i := range c.stripes.Load() {
		if c.stripes.Load()[i].n.Load() > 0 {
			used++
		}
	}
	require.Greater(t, used, 1, "goroutines count apart")
}

// Those who meet at the one word go on to stripes, and who counts alone does not.
func TestWhoMeetsCountsOnStripes(t *testing.T) {
	var alone, c Counter
	for range 1000 {
		alone.Add()
	}
	require.Nil(t, alone.stripes.Load())
	require.EqualValues(t, 1000, alone.Load())

	// When they meet is the machine's, so this is real time; on one core hardly anybody
	// ever does.
	several, most := runtime.NumCPU() > 1, time.Minute
	if !several {
		most = 100 * time.Millisecond
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	var counting sync.WaitGroup
	var counted atomic.Uint64
	began := time.Now()
	for range 2 {
		counting.Go(func() {
			for c.stripes.Load() == nil && time.Since(began) < most {
				for range 1000 {
					c.Add()
				}
				counted.Add(1000)
			}
		})
	}
	counting.Wait()
	require.True(t, c.stripes.Load() != nil || !several, "nobody went on to stripes")
	require.Equal(t, counted.Load(), c.Load())
}
