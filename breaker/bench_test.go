package breaker

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// The configurations that the benchmarks measure.
var benchConfigs = []struct {
	name string
	c    Config
}{
	{"consecutive", Config{Consecutive: 5}},
	{"calls", Config{Window: Window{Calls: 100}, FailureRate: 0.5}},
	{"span", Config{Window: Window{Span: 10 * time.Second}, FailureRate: 0.5}},
	{"slow+stall", Config{
		Window: Window{Span: 10 * time.Second}, FailureRate: 0.5,
		SlowCall: time.Second, SlowRate: 0.5, Stall: Stall{After: time.Second},
	}},
	{"all", Config{
		Window: Window{Span: 10 * time.Second}, FailureRate: 0.5, Failures: 30_000, Consecutive: 5,
		SlowCall: time.Second, SlowRate: 0.5, Stall: Stall{After: time.Second}, RampUp: time.Second,
	}},
}

func benchBreaker(tb testing.TB, c Config) *Breaker {
	b, err := New("bench", c)
	if err != nil {
		tb.Fatal(err)
	}
	for range 200 { // a count window is full
		t, _ := b.Allow()
		t.Done(Outcome{Verdict: Success})
	}
	return b
}

//go:noinline
func bareCall() bool { return true }

// The bare limits: what the cheapest correct thing of the kind costs.

func BenchmarkBareCall(b *testing.B) {
	for b.Loop() {
		bareCall()
	}
}

func BenchmarkBareLoad(b *testing.B) {
	var v atomic.Uint64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if v.Load() == 1 {
				panic(1)
			}
			bareCall()
		}
	})
}

func BenchmarkBareAdd(b *testing.B) {
	var v atomic.Uint64
	b.Run("serial", func(b *testing.B) {
		for b.Loop() {
			v.Add(1)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				v.Add(1)
			}
		})
	})
}

func BenchmarkBareClock(b *testing.B) {
	b.Run("serial", func(b *testing.B) {
		for b.Loop() {
			mono.Now()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				mono.Now()
			}
		})
	})
}

// BenchmarkBareClockAdd is the limit of a time window: one reading, one write.
func BenchmarkBareClockAdd(b *testing.B) {
	var v atomic.Uint64
	b.Run("serial", func(b *testing.B) {
		for b.Loop() {
			v.Add(uint64(mono.Now().Pack()))
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				v.Add(uint64(mono.Now().Pack()))
			}
		})
	})
}

func BenchmarkClosed(b *testing.B) {
	for _, bc := range benchConfigs {
		b.Run(bc.name, func(b *testing.B) {
			br := benchBreaker(b, bc.c)
			b.ReportAllocs()
			for b.Loop() {
				t, err := br.Allow()
				if err != nil {
					b.Fatal(err)
				}
				bareCall()
				t.Done(Outcome{Verdict: Success})
			}
		})
	}
}

// BenchmarkClosedAt is BenchmarkClosed with the time handed in.
func BenchmarkClosedAt(b *testing.B) {
	for _, bc := range benchConfigs {
		b.Run(bc.name, func(b *testing.B) {
			br := benchBreaker(b, bc.c)
			b.ReportAllocs()
			now := mono.Now()
			for b.Loop() {
				t, err := br.AllowAt(now)
				if err != nil {
					b.Fatal(err)
				}
				bareCall()
				t.DoneAt(Outcome{Verdict: Success}, now)
			}
		})
	}
}

func BenchmarkClosedParallel(b *testing.B) {
	for _, bc := range benchConfigs {
		for _, n := range []int{2, 8} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", bc.name, n), func(b *testing.B) {
				br := benchBreaker(b, bc.c)
				b.ReportAllocs()
				b.SetParallelism(max(1, n/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						t, err := br.Allow()
						if err != nil {
							b.Error(err)
							return
						}
						bareCall()
						t.Done(Outcome{Verdict: Success})
					}
				})
			})
		}
	}
}

// BenchmarkMixed has one failure in ten.
func BenchmarkMixed(b *testing.B) {
	for _, bc := range benchConfigs {
		bc.c.Failures = 0
		b.Run(bc.name, func(b *testing.B) {
			br := benchBreaker(b, bc.c)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				t, err := br.Allow()
				if err != nil {
					b.Fatal(err)
				}
				bareCall()
				v := Success
				if i++; i == 10 {
					v, i = Failure, 0
				}
				t.Done(Outcome{Verdict: v})
			}
		})
	}
}

func BenchmarkMixedParallel(b *testing.B) {
	for _, bc := range benchConfigs {
		bc.c.Failures = 0
		b.Run(bc.name, func(b *testing.B) {
			br := benchBreaker(b, bc.c)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				i := 0
				for pb.Next() {
					t, err := br.Allow()
					if err != nil {
						b.Error(err)
						return
					}
					bareCall()
					v := Success
					if i++; i == 10 {
						v, i = Failure, 0
					}
					t.Done(Outcome{Verdict: v})
				}
			})
		})
	}
}

func openBreaker(tb testing.TB) *Breaker {
	b := benchBreaker(tb, Config{Consecutive: 1, Cooldown: time.Hour, MaxCooldown: 2 * time.Hour})
	t, _ := b.Allow()
	t.Done(Outcome{})
	return b
}

func BenchmarkOpen(b *testing.B) {
	b.Run("serial", func(b *testing.B) {
		br := openBreaker(b)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := br.Allow(); err == nil {
				b.Fatal("admitted")
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		br := openBreaker(b)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := br.Allow(); err == nil {
					b.Error("admitted")
					return
				}
			}
		})
	})
}

// BenchmarkMemory tells the bytes of a breaker in a group, without its key.
func BenchmarkMemory(b *testing.B) {
	const n = 100_000
	for _, bc := range append(benchConfigs, struct {
		name string
		c    Config
	}{"span+slow", Config{Window: Window{Span: 10 * time.Second}, FailureRate: 0.5, SlowCall: time.Second}}) {
		b.Run(bc.name, func(b *testing.B) {
			rules := compile(bc.c)
			all := make([]*Breaker, n)
			for b.Loop() {
				clear(all)
				before, objects := heap()
				for i := range all {
					all[i] = newBreaker("key", rules, mono.Instant{})
				}
				after, now := heap()
				b.ReportMetric(float64(after-before)/n, "B/breaker")
				b.ReportMetric(float64(now-objects)/n, "objects/breaker")
				runtime.KeepAlive(all)
			}
		})
	}
}

func heap() (bytes, objects uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.HeapObjects
}
