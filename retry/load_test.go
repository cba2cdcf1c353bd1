package retry

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// load runs calls at a steady rate against a dependency that fails a share of
// them, with the standard policy, and returns how many calls and attempts there
// were. It must be called in a bubble.
func load(perSecond int, span time.Duration, failing float64) (calls, attempts int64) {
	p, bucket := &Policy{}, NewBucketAt(Budget{}, mono.Now())
	var made atomic.Int64
	var wg sync.WaitGroup
	n := int(span.Seconds() * float64(perSecond))
	for range n {
		wg.Go(func() {
			prev := time.Duration(0)
			for attempt := 1; ; attempt++ {
				made.Add(1)
				if rand.Float64() >= failing {
					bucket.Earn()
					return
				}
				d := p.Next(Input{
					Attempt: attempt, Safety: call.ReadOnly, Left: NoLimit, Bucket: bucket,
					Result: call.Result{Class: call.ServerFault}, PrevDelay: prev, U: 1 - rand.Float64(),
				})
				if !d.Again {
					return
				}
				time.Sleep(d.Delay)
				prev = d.Delay
			}
		})
		time.Sleep(time.Second / time.Duration(perSecond))
	}
	wg.Wait()
	return int64(n), made.Load()
}

func TestR6_RetriesCostLittleWhenEverythingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, attempts := load(1000, 10*time.Second, 1)
		extra := float64(attempts-calls) / float64(calls)
		t.Logf("%.2f %% more load", 100*extra)
		require.LessOrEqual(t, extra, 0.02)
		require.Greater(t, extra, 0.005, "the reserve is granted")
	})
}

func TestR6_RetriesAreGrantedInABlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, attempts := load(1000, 10*time.Second, 0.2)
		extra := float64(attempts-calls) / float64(calls)
		t.Logf("%.3f extra attempts per call", extra)
		require.GreaterOrEqual(t, extra, 0.18)
		require.LessOrEqual(t, extra, 0.25)
	})
}

func TestD041_ABurstIsChargedBeforeItWaits(t *testing.T) {
	// With R6's numbers: 10 held, 10 a second; all 100 calls fail at once and
	// wait 100 ms and 200 ms.
	p := &Policy{Backoff: Backoff{Base: 100 * time.Millisecond, Jitter: NoJitter}}
	run := func(bucket *Bucket) (repeats int64) {
		for attempt := 1; ; attempt++ {
			d := p.Next(Input{
				Attempt: attempt, Safety: call.Idempotent, Left: NoLimit, U: 1,
				Bucket: bucket, Result: call.Result{Class: call.Unavailable},
			})
			if !d.Again {
				return repeats
			}
			repeats++
			time.Sleep(d.Delay)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		bucket := bucketOf(t, Budget{})
		var repeats atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { repeats.Add(run(bucket)) })
		}
		wg.Wait()
		require.LessOrEqual(t, repeats.Load(), int64(10+3))
		require.GreaterOrEqual(t, repeats.Load(), int64(10))
	})
	synctest.Test(t, func(t *testing.T) {
		bucket := bucketOf(t, Budget{})
		for range 6 { // one after another: each still gets its retries
			require.EqualValues(t, 2, run(bucket))
		}
	})
}

func TestD042_ADenialKeepsTheFailureAndSaysWhoseItIs(t *testing.T) {
	now := mono.Now()
	bucket := NewBucketAt(Budget{Initial: 1}, now)
	require.True(t, bucket.TakeAt(now))
	in := fail(call.ServerFault)
	in.Bucket = bucket
	d := (&Policy{}).NextAt(in, now)
	require.Equal(t, Decision{Reason: ErrBudget}, d)
	err := error(&StoppedError{Reason: d.Reason, Attempts: 1, Last: in.Result.Err})
	require.ErrorIs(t, err, ErrBudget)
	require.ErrorIs(t, err, in.Result.Err)
	require.EqualError(t, err,
		"retry: stopped after 1 attempt: this client's budget for the target is used up; last failure: a server_fault")
}
