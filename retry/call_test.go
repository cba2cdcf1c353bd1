package retry

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// TestR1_PropertyACallStaysWithinItsPolicy plays whole calls against random
// results, in time that only the decisions let pass.
func TestR1_PropertyACallStaysWithinItsPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Policy{
			MaxAttempts: rapid.IntRange(1, 8).Draw(t, "MaxAttempts"),
			Backoff: Backoff{
				Base:   time.Duration(rapid.IntRange(1, 1000).Draw(t, "Base ms")) * time.Millisecond,
				Jitter: Jitter(rapid.IntRange(0, jitters-1).Draw(t, "Jitter")),
			},
		}
		require.NoError(t, p.Check())
		start := mono.Now()
		budget := Budget{PerSecond: minPerSecond, Initial: float64(rapid.IntRange(1, 5).Draw(t, "tokens"))}
		bucket := NewBucketAt(budget, start)
		whole := time.Duration(rapid.IntRange(0, 10_000).Draw(t, "ms in all")) * time.Millisecond
		now, prev, attempt := start, time.Duration(0), 1
		for {
			now = now.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "attempt ms")) * time.Millisecond)
			in := Input{
				Attempt: attempt, Safety: call.ReadOnly, Left: start.Add(whole).Sub(now),
				Bucket: bucket, PrevDelay: prev,
				U: rapid.Float64Range(math.SmallestNonzeroFloat64, 1).Draw(t, "U"),
				Result: call.Result{
					Class:      rapid.SampledFrom([]call.Class{call.Throttled, call.Unavailable, call.OK}).Draw(t, "class"),
					RetryAfter: time.Duration(rapid.IntRange(-1, 2).Draw(t, "RetryAfter s")) * time.Second,
				},
			}
			d := p.NextAt(in, now)
			if !d.Again {
				require.Zero(t, d.Delay)
				require.Equal(t, d.Reason == nil, in.Result.Class == call.OK || attempt == p.MaxAttempts)
				break
			}
			require.NoError(t, d.Reason)
			require.Greater(t, d.Delay, time.Duration(0))
			require.GreaterOrEqual(t, d.Delay, in.Result.RetryAfter)
			require.LessOrEqual(t, d.Delay, max(in.Result.RetryAfter, 0)+p.Backoff.WithDefaults().Cap)
			now, prev = now.Add(d.Delay), d.Delay
			require.Less(t, now.Sub(start), whole, "the next attempt starts before the end")
			attempt++
		}
		require.LessOrEqual(t, attempt, p.MaxAttempts)
		require.InDelta(t, budget.Initial-float64(attempt-1), bucket.TokensAt(now), 1e-4, "a token for each repeat")
	})
}

func FuzzNext(f *testing.F) {
	f.Add(1, uint8(4), uint8(2), uint8(0), int64(0), int64(NoLimit), int64(0), 0.5, 3, int64(0))
	f.Add(0, uint8(3), uint8(0), uint8(255), int64(-1), int64(-1), int64(-1), math.NaN(), -1, int64(-1))
	f.Add(math.MaxInt, uint8(6), uint8(9), uint8(1), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64), -1.0, Unlimited, int64(math.MaxInt64))
	f.Add(2, uint8(5), uint8(3), uint8(2), int64(2e9), int64(1e9), int64(50e6), 1.0, 0, int64(60e9))
	read, failed, noLimit := uint8(call.ReadOnly), uint8(call.Unavailable), int64(NoLimit)
	f.Add(2, failed, read, uint8(0), int64(0), noLimit, int64(50e6), 0.5, 3, int64(0))                 // again
	f.Add(1, failed, read, uint8(128), int64(1e9), noLimit, int64(0), 0.5, 3, int64(0))                // after an exact pause
	f.Add(1, failed, uint8(call.Unsafe), uint8(1), int64(0), noLimit, int64(0), 0.5, 3, int64(0))      // not sent
	f.Add(3, failed, read, uint8(0), int64(0), noLimit, int64(0), 0.5, 3, int64(0))                    // all used
	f.Add(1, failed, read, uint8(64), int64(0), noLimit, int64(0), 0.5, 3, int64(0))                   // refused
	f.Add(1, uint8(call.Throttled), read, uint8(0), int64(2e9), noLimit, int64(0), 0.5, 3, int64(1e9)) // too long a pause
	f.Add(1, failed, read, uint8(0), int64(0), int64(1), int64(0), 0.5, 3, int64(0))                   // no time
	f.Fuzz(func(t *testing.T, attempt int, class, safety, bits uint8, retryAfter, left, prev int64, u float64, most int, limit int64) {
		p := &Policy{MaxAttempts: most, RetryAfterCap: time.Duration(limit)}
		in := Input{
			Attempt: attempt, Safety: call.Safety(safety), Left: time.Duration(left), PrevDelay: time.Duration(prev), U: u,
			Result: call.Result{
				Class: call.Class(class), RetryAfter: time.Duration(retryAfter), NotSent: bits&1 != 0, NoRetry: bits&2 != 0, Exact: bits&128 != 0,
			},
			Keyed: bits&4 != 0, Probe: bits&8 != 0, CallerDone: bits&16 != 0, Nested: bits&32 != 0,
		}
		if bits&64 != 0 {
			in.Refusal = errOpen
		}
		d := p.Next(in)
		switch {
		case !d.Again:
			if d.Delay != 0 {
				t.Fatalf("%+v: %+v waits for nothing", in, d)
			}
		case in.Result.Exact && d.Delay != in.Result.RetryAfter, !in.Result.Exact && d.Delay < 1, d.Reason != nil, d.Delay >= in.Left, d.Delay < in.Result.RetryAfter,
			attempt >= p.WithDefaults().MaxAttempts, in.Refusal != nil, in.Probe, in.CallerDone, in.Nested,
			in.Result.NoRetry, !Repeatable(in.Result, in.Safety, in.Keyed):
			t.Fatalf("%+v: %+v", in, d)
		}
	})
}

func FuzzBucket(f *testing.F) {
	f.Add(0.0, 0.0, 0.0, 0.0, int64(0), []byte("ettewt"))
	f.Add(1.0, 1e6, 1e9, 1e9, int64(-8e17), []byte("wwwwtttteeee"))
	f.Add(0.5, 1e-6, 100.0, 1.0, int64(8e17), []byte("tetetete"))
	f.Add(0.0, 73.0, 4.8, 0.0, int64(0), []byte("ettert")) // Cap is no whole number of nanoseconds
	f.Add(math.NaN(), math.Inf(1), -1.0, 2.0, int64(1), []byte("wet"))
	f.Fuzz(func(t *testing.T, share, perSecond, most, initial float64, at int64, ops []byte) {
		if at < -1e18 || at > 1e18 || len(ops) > 1000 {
			return // beyond what a clock shows
		}
		now := mono.Unpack(at)
		b := Budget{Share: share, PerSecond: perSecond, Cap: most, Initial: initial}
		if _, err := NewBucket(b); err != nil {
			return
		}
		k := NewBucketAt(b, now)
		earned := k.TokensAt(now)
		taken := 0.0
		for _, op := range ops {
			switch op % 3 {
			case 0:
				k.EarnAt(now)
				earned += k.now.Load().budget.Share
			case 1:
				if k.TakeAt(now) {
					taken++
				}
			default:
				d := time.Duration(op) << 25
				now = now.Add(d)
				earned += d.Seconds() * k.now.Load().budget.PerSecond
			}
			if held := k.TokensAt(now); held < 0 || held > k.now.Load().budget.Cap || math.IsNaN(held) {
				t.Fatalf("%+v holds %v", k.now.Load().budget, held)
			}
		}
		// An operation is rounded to the nanosecond, which is 1e-3 tokens at the
		// highest rate.
		if slack := 1e-9 * k.now.Load().budget.PerSecond * float64(len(ops)+1); taken > earned+slack+1e-9*earned {
			t.Fatalf("%+v gave %v of %v", k.now.Load().budget, taken, earned)
		}
	})
}
