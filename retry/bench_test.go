package retry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// What a layer of retries adds to a call whose first attempt succeeds: the
// check of the class and, with a budget, the token it earns.
func BenchmarkFirstTrySucceeds(b *testing.B) {
	attempt := func() call.Result { return call.Result{Class: call.OK} }
	p, now := &Policy{}, mono.Now()
	full := NewBucketAt(Budget{}, now.Add(-time.Hour))
	var filling *Bucket
	once := func(k *Bucket, now mono.Instant) bool {
		r := attempt()
		if r.Class == call.OK {
			k.EarnAt(now)
			return true
		}
		return p.NextAt(Input{Attempt: 1, Result: r, Left: NoLimit, Bucket: k, U: 1}, now).Again
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if attempt().Class != call.OK {
				b.Fatal()
			}
		}
	})
	b.Run("no budget", func(b *testing.B) {
		for b.Loop() {
			once(nil, now)
		}
	})
	b.Run("budget full", func(b *testing.B) {
		for b.Loop() {
			once(full, now)
		}
	})
	b.Run("budget full, parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				once(full, now)
			}
		})
	})
	b.Run("budget filling", func(b *testing.B) {
		// 1e8 tokens of room: it stays short of full.
		filling = NewBucketAt(Budget{Cap: 1e10, PerSecond: 1000, Initial: 1}, now)
		for b.Loop() {
			once(filling, now)
		}
	})
	b.Run("budget filling, parallel", func(b *testing.B) {
		filling = NewBucketAt(Budget{Cap: 1e10, PerSecond: 1000, Initial: 1}, now)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				once(filling, now)
			}
		})
	})
	b.Run("through Next", func(b *testing.B) {
		in := Input{Attempt: 1, Result: call.Result{Class: call.OK}, Left: NoLimit, U: 1}
		for b.Loop() {
			p.NextAt(in, now)
		}
	})
}

func BenchmarkNextAgain(b *testing.B) {
	p, now := &Policy{}, mono.Now()
	in := fail(call.Unavailable)
	in.Bucket = NewBucketAt(Budget{Cap: 1e10, PerSecond: 1000, Initial: 1e10}, now)
	b.ReportAllocs()
	for b.Loop() {
		p.NextAt(in, now)
	}
}

func TestADecisionDoesNotAllocate(t *testing.T) {
	p, now := &Policy{}, mono.Now()
	in := fail(call.Unavailable)
	in.Bucket = NewBucketAt(Budget{}, now)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.NextAt(in, now)
		in.Bucket.EarnAt(now)
	}))
}
