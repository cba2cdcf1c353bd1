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
	for last := uint64(0); last < counters*each; {
		now := c.Load()
		require.GreaterOrEqual(t, now, last, "a counter never falls")
		last = now
		if now == counters*each {
			break
		}
	}
	wg.Wait()
	c.AddN(5)
	require.EqualValues(t, counters*each+5, c.Load())
}
