// Package mono carries one reading of the monotonic clock from layer to layer,
// so that an attempt reads the clock at its start and at its end and nowhere
// else. The ...At methods that take one are for holdfast's own packages: nobody
// else can name the type or take a reading.
package mono

import "time"

// Instant is a moment on the monotonic clock of this process, in nanoseconds
// from an arbitrary origin.
//
// Only differences mean anything. The origin lies decades away inside a
// testing/synctest bubble, so an Instant may be negative and its zero is no
// special moment: whoever packs instants into few bits takes an Instant of its
// own in its constructor and stores the distance from it.
type Instant int64

var origin = time.Now()

// Now reads the clock.
func Now() Instant { return Instant(time.Since(origin)) }

// Of returns the instant of a time, such as a context's deadline, without reading
// the clock if the time has a monotonic reading.
func Of(t time.Time) Instant {
	if t == t.Round(0) {
		return Now().Add(time.Until(t)) // it has not: what it is worth now
	}
	return Instant(t.Sub(origin))
}

// Sub returns t - u.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// far is later than anything that happens, and its distance from any reading of
// the clock is a time.Duration.
const far Instant = 1 << 62

// Add returns t + d, which a d without end does not turn into the past.
func (t Instant) Add(d time.Duration) Instant {
	if sum := t + Instant(d); d <= 0 || sum >= t && sum < far {
		return sum
	}
	return far
}
