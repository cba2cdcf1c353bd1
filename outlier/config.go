package outlier

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Config says when an instance is ejected and for how long. A zero field is its
// documented default.
type Config struct {
	// Window is the number of an instance's last results that are looked at. Zero
	// is 20, or MinCalls if that is more.
	Window int

	// MinCalls is the number of results from which an instance is judged. Zero is 5.
	MinCalls int

	// FailureRate is the share of failures, 0 < r <= 1, that ejects. Zero is 0.5.
	FailureRate float64

	// Time is how long the first ejection in a row lasts; each further one lasts
	// twice as long, and all are spread by a fifth. Zero is 10 s.
	Time time.Duration

	// MaxTime bounds the growth. Zero is 30 x Time.
	MaxTime time.Duration

	// TrialTimeout is how long a trial may be unanswered before it has failed; the
	// call itself may go on. Zero is the limit that the policy of the call on trial
	// sets for an attempt (Timeout.Attempt), or 10 s without one.
	TrialTimeout time.Duration

	// MaxEjected is the number of instances that may be left out at the same time.
	// Of more that are bad, those whose time is over soonest are used all the same.
	// Zero, and any number too large, is all but one.
	MaxEjected int

	// Ejected is told of each ejection, and Returned when a trial has brought an
	// instance back. Nil means that nobody is. They run on the goroutine of the call
	// that found out, outside every lock.
	Ejected  func(name string, lasts time.Duration)
	Returned func(name string)
}

// leastRate is the least share that a breaker can tell from none.
const leastRate = 1e-9

// Check returns nil, or an error that names every bad field.
func (c Config) Check() error { return c.check().Err("outlier") }

func (c Config) check() check.Faults {
	var faults check.Faults
	if c.Window < 0 || c.Window > 32_768 {
		faults.Add("Window", c.Window, "must be between 1 and 32768, or 0 for the default")
	}
	switch {
	case c.MinCalls < 0 || c.MinCalls > 30_000:
		faults.Add("MinCalls", c.MinCalls, "must be between 1 and 30000, or 0 for the default")
	case c.Window > 0 && c.MinCalls > c.Window:
		faults.Add("MinCalls", c.MinCalls, "must not exceed Window = %d", c.Window)
	}
	if r := c.FailureRate; r != 0 && !(r >= leastRate && r <= 1) {
		faults.Add("FailureRate", r, "must be between %v and 1, or 0 for the default", leastRate)
	}
	if c.Time < 0 {
		faults.Add("Time", c.Time, "must be positive, or 0 for the default")
	}
	if c.MaxTime < 0 || c.MaxTime > 0 && c.MaxTime < c.WithDefaults().Time {
		faults.Add("MaxTime", c.MaxTime, "must be at least Time = %v, or 0 for the default", c.WithDefaults().Time)
	}
	if c.TrialTimeout < 0 {
		faults.Add("TrialTimeout", c.TrialTimeout, "must be positive, or 0 for the default")
	}
	if c.MaxEjected < 0 {
		faults.Add("MaxEjected", c.MaxEjected, "must not be negative; 0 is all but one")
	}
	return faults
}

// WithDefaults returns c with every zero field filled in, but for TrialTimeout and
// MaxEjected, whose defaults depend on the call and on the number of instances.
func (c Config) WithDefaults() Config {
	if c.MinCalls == 0 {
		c.MinCalls = 5
		if c.Window > 0 {
			c.MinCalls = min(c.MinCalls, c.Window)
		}
	}
	if c.Window == 0 {
		c.Window = max(20, c.MinCalls)
	}
	if c.FailureRate == 0 {
		c.FailureRate = 0.5
	}
	if c.Time == 0 {
		c.Time = 10 * time.Second
	}
	if c.MaxTime == 0 {
		c.MaxTime = max(30*min(c.Time, math.MaxInt64/30), c.Time) // of 10 years it is no more than it can hold
	}
	return c
}
