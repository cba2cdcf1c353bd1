package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/breaker/breakertest"
	"github.com/holdfast-go/holdfast/examples/outage/sim"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// runSharing is sim.Run for callers who share their breakers' state, in a store in
// memory. What shares waits for its store with timers and goroutines of its own,
// which know nothing of the simulation's time. So the run takes place in a bubble of
// testing/synctest, where time is virtual for all, and keeps time with that.
//
// The bubble wants a *testing.T to which it would report; nothing here does.
func runSharing(seed uint64, s sim.Setup, c sim.Client) (figures sim.Figures, err error) {
	synctest.Test(new(testing.T), func(*testing.T) {
		s.Start = mono.Now()
		s.Before = func(at mono.Instant) { time.Sleep(at.Sub(mono.Now())) }
		s.After = synctest.Wait
		c.Share = breakertest.NewMemory()
		figures, err = sim.Run(seed, s, c, nil)
		time.Sleep(time.Minute) // to the end of what the fleet still does
	})
	return figures, err
}
