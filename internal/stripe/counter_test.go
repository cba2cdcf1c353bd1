package stripe_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/stripe"
)

func TestNothingIsLostWhereManyCount(t *testing.T) {
	const counters, each = 16, 20_000
	var c stripe.Counter
	var wg sync.WaitGroup
	for range counters {
		wg.Go(func() {
			for range each {
				c.Add()
			}
		})
	}
	counted := make(chan struct{})
	go func() {
		wg.Wait()
		close(counted)
	}()
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
	require.EqualValues(t, counters*each+5, c.Load())
}
