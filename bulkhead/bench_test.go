package bulkhead

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkFree(b *testing.B) {
	ctx := context.Background()
	bulk, _ := New("b", Config{Limit: 1000, Queue: 10})
	b.ReportAllocs()
	for b.Loop() {
		p, err := bulk.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		p.Release()
	}
}

func BenchmarkFreeParallel(b *testing.B) {
	ctx := context.Background()
	bulk, _ := New("b", Config{Limit: 1000, Queue: 10})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := bulk.Acquire(ctx)
			if err != nil {
				b.Error(err)
			}
			p.Release()
		}
	})
}

func BenchmarkRefused(b *testing.B) {
	ctx := context.Background()
	bulk, _ := New("b", Config{Limit: 1})
	p, _ := bulk.Acquire(ctx)
	defer p.Release()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = bulk.Acquire(ctx)
	}
}

// What the goals are measured against, in the same run.
func BenchmarkBare(b *testing.B) {
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		for b.Loop() {
			mu.Lock()
			//lint:ignore SA2001 The empty section is what is measured.
			mu.Unlock()
		}
	})
	b.Run("two adds", func(b *testing.B) {
		var n atomic.Int64
		for b.Loop() {
			n.Add(2)
			n.Add(-2)
		}
	})
	b.Run("two adds, parallel", func(b *testing.B) {
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(2)
				n.Add(-2)
			}
		})
	})
}

func BenchmarkQueued(b *testing.B) {
	ctx := context.Background()
	bulk, _ := New("b", Config{Limit: 1, Queue: math.MaxInt})
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := bulk.Acquire(ctx)
			if err != nil {
				b.Error(err)
			}
			p.Release()
		}
	})
}

func TestAFreePermitAndARefusalDoNotAllocate(t *testing.T) {
	ctx := context.Background()
	bulk, err := New("b", Config{Limit: 1})
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p, _ := bulk.Acquire(ctx)
		_, _ = bulk.Acquire(ctx)
		p.Release()
	}))
}
