// Package stripe has a counter that many processors may add to at once.
package stripe

import (
	"sync/atomic"
	"unsafe"
)

// Counter is a counter that never falls. Callers that meet at its one word go on
// to count on stripes, each on a cache line of its own, so that many who count at
// once do not wait for each other: a breaker's refusals to two goroutines (its
// BenchmarkOpen) take 22 ns so, else 30 ns, of which 17 ns are the clock. The zero
// Counter is zero; it is not to be copied.
type Counter struct {
	n       atomic.Uint64
	stripes atomic.Pointer[Stripes]
}

// Add counts one.
func (c *Counter) Add() {
	if s := c.stripes.Load(); s != nil {
		s.Add()
		return
	}
	if v := c.n.Load(); !c.n.CompareAndSwap(v, v+1) {
		c.stripes.CompareAndSwap(nil, new(Stripes))
		c.n.Add(1)
	}
}

// AddN counts n.
func (c *Counter) AddN(n uint64) { c.n.Add(n) }

// Load returns the count.
func (c *Counter) Load() uint64 {
	n := c.n.Load()
	if s := c.stripes.Load(); s != nil {
		n += s.Load()
	}
	return n
}

// Stripes is a counter as a [Counter] is that has found many callers: for what is
// counted so often that even to look for them is dear. To add is a part of the caller.
type Stripes [8]struct {
	n atomic.Uint64
	_ [56]byte
}

// Add counts one.
func (s *Stripes) Add() { s[here()%uintptr(len(s))].n.Add(1) }

// Load returns the count.
func (s *Stripes) Load() uint64 {
	n := uint64(0)
	for i := range s {
		n += s[i].n.Load()
	}
	return n
}

// here returns a number that differs between goroutines, mostly, and is the
// same for one, mostly: its stack's place in memory, mixed.
func here() uintptr {
	var local byte
	return uintptr(unsafe.Pointer(&local)) >> 11 * 0x9E3779B1 >> 16
}
