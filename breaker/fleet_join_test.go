package breaker_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// S1: who joins waits for one Timeout, whatever the number of pages that the store's
// answer has. What has come by then counts, and the rest is read at the first use.
func TestS1_JoinTakesOneTimeoutForAllPages(t *testing.T) {
	const keys = 2400 // five pages
	for each, known := range map[time.Duration]int{
		30 * ms:  1500, // the fourth page comes too late
		49 * ms:  1000, // the third
		150 * ms: 0,
		0:        keys,
	} {
		t.Run(each.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, store *breakertest.Memory) {
				op := join(t, store, "op", shared())
				time.Sleep(time.Second)
				for i := range keys {
					require.NoError(t, op.fleet.ForceOpen(t.Context(), fmt.Sprint("key", i), "all"))
					time.Sleep(time.Microsecond)
				}
				var delay atomic.Int64
				delay.Store(int64(each))
				w := &wire{Store: store, delay: func() time.Duration { return time.Duration(delay.Load()) }}
				begin := time.Now()
				f, err := breaker.Join(breaker.Sharing{Store: w, Timeout: 100 * ms})
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(begin), 100*ms)
				require.Equal(t, known, f.Stats().Records)
				require.Equal(t, known > 0, f.Stats().Answering, "one that has told something answers")

				g, err := f.Group(shared(), 0)
				require.NoError(t, err)
				delay.Store(int64(50 * ms)) // for each page a refresh has a Timeout
				_, _ = g.For("other").Allow()
				if known > 0 {
					time.Sleep(260 * ms)
				} else {
					time.Sleep(2260 * ms) // its turn is as after any that failed
				}
				synctest.Wait()
				require.Equal(t, keys, f.Stats().Records)
				require.Equal(t, breaker.ForcedOpen, g.For(fmt.Sprint("key", keys-1)).State())
			})
		})
	}
}
