// Package mono carries one reading of the monotonic clock from layer to layer,
// so that an attempt reads the clock at its start and at its end and nowhere
// else. The ...At methods that take one are for the kit's own packages: nobody
// else can name the type, take a reading, or write a constant of it.
package mono

import (
	"math"
	"time"
)

// Instant is a moment on the monotonic clock of this process, in nanoseconds
// from an arbitrary origin. Two of them are compared with == as well.
//
// Only differences mean anything. The origin lies decades away inside a
// testing/synctest bubble, so an Instant may be negative and its zero is no
// special moment: whoever packs instants into few bits takes an Instant of its
// own in its constructor and stores the distance from it.
type Instant struct{ ns int64 }

var origin = time.Now()

// Now reads the clock.
func Now() Instant { return Instant{int64(time.Since(origin))} }

// Of returns the instant of a time, such as a context's deadline, without reading
// the clock if the time has a monotonic reading.
func Of(t time.Time) Instant {
	if t == t.Round(0) {
		return Now().Add(time.Until(t)) // it has not: what it is worth now
	}
	return Instant{int64(t.Sub(origin))}
}

// First is earlier than anything that happens, and Last is later; they are marks,
// and their distance from another Instant means nothing.
func First() Instant { return Instant{math.MinInt64} }

// Last is the counterpart of First.
func Last() Instant { return Instant{math.MaxInt64} }

// Unpack returns the instant whose Pack is ns.
func Unpack(ns int64) Instant { return Instant{ns} }

// Pack returns t as a number, for an atomic; the order of the numbers is that of
// the instants.
func (t Instant) Pack() int64 { return t.ns }

// Before reports whether t is earlier than u.
func (t Instant) Before(u Instant) bool { return t.ns < u.ns }

// After reports whether t is later than u.
func (t Instant) After(u Instant) bool { return t.ns > u.ns }

// Earlier returns the earlier of two instants.
func Earlier(t, u Instant) Instant { return Instant{min(t.ns, u.ns)} }

// Later returns the later of two instants.
func Later(t, u Instant) Instant { return Instant{max(t.ns, u.ns)} }

// Sub returns t - u.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t.ns - u.ns) }

// far is later than anything that happens, and its distance from any reading of
// the clock is a time.Duration.
const far = 1 << 62

// Add returns t + d, which a d without end does not turn into the past.
func (t Instant) Add(d time.Duration) Instant {
	if sum := t.ns + int64(d); d <= 0 || sum >= t.ns && sum < far {
		return Instant{sum}
	}
	return Instant{far}
}
