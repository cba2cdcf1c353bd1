package main

import (
	"runtime"
	"sync"
	"time"
)

// ballast keeps the collector from being what an allocating contender is
// measured by: with a small heap it would run all the time.
var ballast = make([]byte, 64<<20)

// sample is one pass of a contender: per operation, or per object in a row of
// memory.
type sample struct {
	Nanos  float64 `json:"ns,omitempty"`
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
	N      int     `json:"n"`
}

// gauge measures one contender.
type gauge struct {
	work       work
	goroutines int
	n          int // operations in a pass
}

// newGauge readies a contender: it is warm, and a pass takes about d.
func newGauge(r *row, c *contender, d time.Duration) *gauge {
	ballast[0] = 1
	g := &gauge{work: c.setup(), goroutines: max(1, r.goroutines)}
	if c.goroutines > 0 {
		g.goroutines = c.goroutines
	}
	g.n = g.goroutines
	for {
		took := g.time()
		if took >= d/2 {
			g.n = max(g.goroutines, int(float64(g.n)*float64(d)/float64(took)))
			return g
		}
		g.n *= 2
	}
}

// pass makes one timed pass.
func (g *gauge) pass() sample {
	return sample{Nanos: float64(g.time()) / float64(g.n), N: g.n}
}

// time does the work n times, shared among the goroutines.
func (g *gauge) time() time.Duration {
	if g.goroutines == 1 {
		start := time.Now()
		g.work(g.n)
		return time.Since(start)
	}
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for range g.goroutines {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-begin
			g.work(g.n / g.goroutines)
		})
	}
	ready.Wait()
	start := time.Now()
	close(begin)
	done.Wait()
	return time.Since(start)
}

// allocations counts what the work allocates, each operation's share of it.
func (g *gauge) allocations() sample {
	n := min(g.n, 2000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	g.work(n)
	runtime.ReadMemStats(&after)
	return sample{
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
		N:      n,
	}
}

// weigh tells the size of one of many objects.
func weigh(make work, n int) sample {
	make(1) // what exists once for all of them
	bytes, objects := heap()
	held := make(n)
	more, moreObjects := heap()
	runtime.KeepAlive(held)
	return sample{
		Bytes:  (more - bytes) / float64(n),
		Allocs: (moreObjects - objects) / float64(n),
		N:      n,
	}
}

func heap() (bytes, objects float64) {
	runtime.GC()
	runtime.GC() // what the first one only marked
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.HeapObjects)
}
