package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// call is what breakers and bulkheads guard in their rows. It is a real call, but
// does nothing.
//
//go:noinline
func call() error { return nil }

// bareCall is the work alone.
var bareCall = contender{name: "bare", role: bare, setup: func() work {
	never := often(0)
	return again(func(n int) {
		for i := range n {
			_ = never.result(i + 1)
		}
	})
}}

// as gives a contender another part to play.
func (c contender) as(role role) contender {
	c.role = role
	return c
}

// The yardsticks: what the cheapest correct thing of a kind cannot do without.

// oneMutex is a compare-and-swap and an add.
var oneMutex = contender{name: "a mutex", role: yardstick, setup: func() work {
	var mu sync.Mutex
	v := 0
	return again(func(n int) {
		for range n {
			mu.Lock()
			v++
			mu.Unlock()
		}
	})
}}

var oneClock = contender{name: "a clock reading", role: yardstick, setup: func() work {
	return again(func(n int) {
		for range n {
			_ = mono.Now()
		}
	})
}}

var clockAndAdd = contender{name: "a clock reading and an atomic add", role: yardstick, setup: func() work {
	var v atomic.Uint64
	return again(func(n int) {
		for range n {
			v.Add(uint64(mono.Now().Pack()))
		}
	})
}}

// twoClocks is the limit of whatever has to know how long a call took.
var twoClocks = contender{name: "two clock readings", role: yardstick, setup: func() work {
	return again(func(n int) {
		for range n {
			begin := mono.Now()
			if mono.Now().Before(begin) {
				panic("the clock went back")
			}
		}
	})
}}

// clocksAndAdds is the limit of the whole stack: when the attempt began and
// ended, its result in the window, its permit taken and given back.
var clocksAndAdds = contender{name: "two clock readings, two atomic adds", role: yardstick, setup: func() work {
	var window, permits atomic.Uint64
	return again(func(n int) {
		for range n {
			begin := mono.Now()
			permits.Add(1)
			_ = call()
			permits.Add(^uint64(0))
			if mono.Now().Before(begin) {
				panic("the clock went back")
			}
			_ = window.Load()
		}
	})
}}

// withTimeout is what a deadline of one's own costs by the standard library.
func withTimeout(asks bool) func() work {
	return func() work {
		return again(func(n int) {
			for range n {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				if asks && ctx.Done() == nil {
					panic("it can end")
				}
				_ = call()
				cancel()
			}
		})
	}
}
