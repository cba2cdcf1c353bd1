package bulkhead

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAdaptiveShrinksUnderASilentDependency sends 200 attempts a second with a
// limit of 1 s each to a dependency that answers in 20 ms but for a minute in
// which it says nothing.
func TestAdaptiveShrinksUnderASilentDependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ceiling, least, healthy = 64, 2, 5 * time.Second
		const silence, recovery = time.Minute, 30 * time.Second
		b := newBulkhead(t, Config{Limit: ceiling, Adaptive: Adaptive{Min: least}})
		start := time.Now()
		silent := func() bool {
			at := time.Since(start)
			return at >= healthy && at < healthy+silence
		}
		attempt := func() {
			p, err := b.Acquire(t.Context())
			if err != nil {
				return
			}
			defer p.Release()
			if silent() {
				time.Sleep(time.Second)
				p.Book(true)
				return
			}
			time.Sleep(20 * time.Millisecond)
			p.Book(false)
		}
		var shrunk, back time.Duration // from the start and from the end of the silence
		settled := 0                   // most in flight once it was shrunk
		for time.Since(start) < healthy+silence+recovery {
			at := time.Since(start)
			switch {
			case at < healthy:
				require.Equal(t, ceiling, b.Limit())
			case silent():
				if shrunk == 0 && b.Limit() == least {
					shrunk = at - healthy
				}
				if shrunk > 0 {
					require.Equal(t, least, b.Limit(), "at %v", at)
					if at > healthy+shrunk+time.Second { // those that were in are out
						settled = max(settled, b.InUse())
					}
				}
			case back == 0 && b.Limit() == ceiling:
				back = at - healthy - silence
			}
			go attempt()
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.True(t, b.Idle())
		t.Logf("64 to 2 in %v, at most %d in flight from then on, and back in %v", shrunk, settled, back)
		require.Positive(t, shrunk)
		require.LessOrEqual(t, shrunk, 8*time.Second)
		require.Equal(t, least, settled)
		require.Positive(t, back)
		require.LessOrEqual(t, back, 15*time.Second)
		require.Equal(t, ceiling, b.Limit())
	})
}
