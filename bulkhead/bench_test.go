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
	bulk, _ := New("b", Config{Limit: 1000, Queue: 10})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) { acquireAll(b, pb, bulk) })
}

func acquireAll(b *testing.B, pb *testing.PB, bulk *Bulkhead) {
	for pb.Next() {
		p, err := bulk.Acquire(context.Background())
		if err != nil {
			b.Error(err)
		}
		p.Release()
	}
}

// An attempt with its end booked, where the limit is fixed, adaptive and at the
// ceiling, and adaptive and below it.
func BenchmarkBooked(b *testing.B) {
	ctx := context.Background()
	for _, bench := range []struct {
		name string
		c    Adaptive
	}{{"fixed", Adaptive{}}, {"calm", Adaptive{Min: 10}}, {"growing", Adaptive{Min: 1000, Start: 1 << 29}}} {
		bulk, err := New("b", Config{Limit: 1 << 30, Adaptive: bench.c})
		if err != nil {
			b.Fatal(err)
		}
		attempt := func() {
			p, err := bulk.Acquire(ctx)
			if err != nil {
				b.Error(err)
			}
			p.Book(false)
			p.Release()
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				attempt()
			}
		})
		b.Run(bench.name+", parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					attempt()
				}
			})
		})
	}
}

func BenchmarkPair(b *testing.B) {
	ctx := context.Background()
	method, target := both(b, Config{Limit: 1000})
	for name, first := range map[string]*Bulkhead{"two": method, "one": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := AcquireBoth(ctx, first, target)
				if err != nil {
					b.Fatal(err)
				}
				p.Release()
			}
		})
	}
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
	bulk, _ := New("b", Config{Limit: 1, Queue: math.MaxInt})
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) { acquireAll(b, pb, bulk) })
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
