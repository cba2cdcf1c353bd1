package keyed

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// The look-up of a key that is there, beside a bare sync.Map.
func BenchmarkHit(b *testing.B) {
	for _, n := range []int{1, 1_000, 100_000} {
		keys := make([]string, n)
		var bare sync.Map
		r := New(Options[*int]{Max: n, New: func(string) *int { return new(int) }})
		now := mono.Now()
		for i := range keys {
			keys[i] = fmt.Sprintf("https://host-%d.example.com:443", i)
			bare.Store(keys[i], r.For(keys[i], now))
		}
		run := func(name string, get func(string)) {
			b.Run(fmt.Sprintf("%s/keys=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					get(keys[i])
					if i += 7; i >= n {
						i = 0
					}
				}
			})
			b.Run(fmt.Sprintf("%s/keys=%d/parallel", name, n), func(b *testing.B) {
				b.ReportAllocs()
				var start atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					for i := int(start.Add(1)) % n; pb.Next(); {
						get(keys[i])
						if i += 7; i >= n {
							i = 0
						}
					}
				})
			})
		}
		run("syncmap", func(k string) { v, _ := bare.Load(k); sink(v.(*int)) })
		run("keyed", func(k string) { sink(r.For(k, now)) })
	}
}

//go:noinline
func sink(*int) {}

// TestALookUpCostsLittleMoreThanABareMap compares the best of many short passes,
// taken in turn. The goal is 1.5 times; the rest is room for a busy machine.
func TestALookUpCostsLittleMoreThanABareMap(t *testing.T) {
	const looks, passes = 2_000, 40
	for _, n := range []int{1_000, 100_000} {
		var bare sync.Map
		r := New(Options[*int]{Max: n, New: func(string) *int { return new(int) }})
		now := mono.Now()
		keys := make([]string, n)
		for i := range keys {
			keys[i] = "https://host-" + strconv.Itoa(i) + ".example.com:443"
			bare.Store(keys[i], r.For(keys[i], now))
		}
		best := [2]time.Duration{time.Hour, time.Hour}
		for pass := range passes {
			for which, get := range []func(string) *int{
				func(k string) *int { v, _ := bare.Load(k); return v.(*int) },
				func(k string) *int { return r.For(k, now) },
			} {
				start := time.Now()
				for i := range looks {
					sink(get(keys[(i*7+pass*looks)%n]))
				}
				best[which] = min(best[which], time.Since(start))
			}
		}
		t.Logf("%d keys: sync.Map %v, registry %v", n, best[0]/looks, best[1]/looks)
		require.Less(t, float64(best[1]), 1.5*1.5*float64(best[0]))
	}
}

// New keys at the bound, one after another.
func BenchmarkFlood(b *testing.B) {
	for _, busy := range []bool{false, true} {
		b.Run(fmt.Sprintf("busy=%v", busy), func(b *testing.B) {
			r := New(Options[*int]{New: func(string) *int { return new(int) }, Idle: func(*int) bool { return !busy }})
			now := mono.Now()
			for i := range DefaultMax {
				r.For(strconv.Itoa(i), now)
			}
			i := DefaultMax
			for b.Loop() {
				now = now.Add(time.Millisecond)
				r.For(strconv.Itoa(i), now)
				i++
			}
		})
	}
}
