package breaker

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

type fleetStats struct {
	refreshes, failures    atomic.Uint64
	granted, held, unasked atomic.Uint64
	lastError              atomic.Pointer[error]
}

func (s *fleetStats) fail(err error) {
	s.failures.Add(1)
	s.lastError.Store(&err)
}

// FleetStats are the figures of a [Fleet]. All but Answering, Records and Age
// are counters that never fall.
type FleetStats struct {
	// Answering is false while the store does not answer and the breakers go by
	// their own knowledge.
	Answering bool

	// Refreshes is the number of refreshes that succeeded, Age the time since
	// the last attempt at one.
	Refreshes uint64
	Age       time.Duration

	// Failures is the number of commands that failed, LastError what the last
	// of them said; a panic of a hook on the fleet's goroutines counts as well.
	Failures  uint64
	LastError error

	// ProbesGranted and ProbesHeld are the answers to those who asked for the
	// lock of a probe; ProbesUnlocked the probes made without it because the
	// store was silent.
	ProbesGranted, ProbesHeld, ProbesUnlocked uint64

	// Records is how many keys are known to be open or forced open.
	Records int
}

// Stats returns the fleet's figures.
func (f *Fleet) Stats() FleetStats {
	s := FleetStats{
		Answering:      !f.down.Load(),
		Refreshes:      f.stats.refreshes.Load(),
		Failures:       f.stats.failures.Load(),
		ProbesGranted:  f.stats.granted.Load(),
		ProbesHeld:     f.stats.held.Load(),
		ProbesUnlocked: f.stats.unasked.Load(),
	}
	if err := f.stats.lastError.Load(); err != nil {
		s.LastError = *err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Records = len(f.known)
	s.Age = mono.Now().Sub(f.cycle.last)
	return s
}
