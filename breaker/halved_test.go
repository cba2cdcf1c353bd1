package breaker

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// crowd makes the window nearly full of successes.
func crowd(ep *episode) {
	l := &ep.rules.span
	for {
		v := ep.sum.Load()
		n := (l.full - v&spanMask) / l.total
		if n < 2 || ep.sum.CompareAndSwap(v, v+(n-1)*l.total) {
			return
		}
	}
}

// B3: a number of failures opens at that number, however many successes there are.
func TestB3_FailuresAreNotHalved(t *testing.T) {
	for name, slow := range map[string]time.Duration{"": 0, "slow": time.Hour} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Failures: 1000, SlowCall: slow})
			r.call(999, Failure)
			for range 3 {
				crowd(r.b.now.Load())
				r.call(5, Success)
			}
			require.Less(t, r.counts().Failures, 999, "the figures are halved")
			r.state(Closed)
			r.call(1, Failure)
			r.state(Open)
			require.Equal(t, ReasonFailures, r.lastReason())
		})
	}
}

// B5: those that have left the window are not counted.
func TestB5_AnOldFailureLeavesABusyWindow(t *testing.T) {
	r := newRig(t, Config{Failures: 2, SlowCall: time.Hour, Window: Window{Span: 10 * time.Second}})
	r.call(1, Failure)
	crowd(r.b.now.Load())
	r.call(2, Success)
	r.step(5 * time.Second)
	r.call(1, Success)
	r.step(5 * time.Second)
	r.call(1, Failure)
	r.state(Closed)
	r.call(1, Failure)
	r.state(Open)
}

// B3, B5: the same as time goes on: the failures are those of the last ten buckets.
func TestB3_FailuresOfABusyWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(2, 5).Draw(t, "Failures")
		now := mono.Instant{}.Add(-time.Hour)
		b := newBreaker("db", compile(Config{Failures: limit, SlowCall: time.Hour, Window: Window{Span: 10 * time.Second}}), now)
		begin, failed := now, map[int]int{}
		book := func(v Verdict) {
			ticket, err := b.AllowAt(now)
			require.NoError(t, err)
			ticket.DoneAt(Outcome{Verdict: v}, now)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				now = now.Add(time.Duration(rapid.IntRange(1, 12_000).Draw(t, "ms")) * ms)
			case 1:
				crowd(b.now.Load())
			case 2:
				book(Success)
			case 3:
				bucket, n := int(now.Sub(begin)/time.Second), 0
				failed[bucket]++
				for i := range 10 {
					n += failed[bucket-i]
				}
				book(Failure)
				require.Equal(t, n >= limit, b.StateAt(now) == Open, "%d failures", n)
				if n >= limit {
					return
				}
			}
		}
	})
}

// B5: none is lost or counted twice while others make the counts be halved.
func TestB5_NoFailureIsLostWhileCountsAreHalved(t *testing.T) {
	const callers, each = 8, 500
	r := newRig(t, Config{Failures: callers*each + 1, SlowCall: time.Hour})
	ep := r.b.now.Load()
	var all sync.WaitGroup
	var ended atomic.Bool
	halver := make(chan bool)
	go func() {
		defer close(halver)
		for !ended.Load() {
			crowd(ep)
		}
	}()
	for range callers {
		all.Go(func() {
			for i := range each {
				for _, v := range []Verdict{Success, Failure} {
					ticket, err := r.b.AllowAt(r.now)
					if err != nil {
						t.Errorf("open after %d", i)
						return
					}
					ticket.DoneAt(Outcome{Verdict: v}, r.now)
				}
			}
		})
	}
	all.Wait()
	ended.Store(true)
	<-halver
	r.state(Closed)
	require.NotNil(t, ep.spans.exact())
	r.call(1, Failure)
	r.state(Open)
}
