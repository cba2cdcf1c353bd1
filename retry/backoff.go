package retry

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/enum"
)

// Jitter says how a wait is spread, so that clients that failed together do not
// come back together. u is uniform in (0, 1].
//
// The names are those of M. Brooker, "Exponential Backoff and Jitter", AWS
// Architecture Blog, 2015.
type Jitter uint8

// The modes; d is the wait before it is spread.
const (
	// FullJitter waits u x d: the widest spread and the least load.
	FullJitter Jitter = iota

	// EqualJitter waits d/2 + u x d/2: at least half the wait is kept.
	EqualJitter

	// DecorrelatedJitter waits from Base to three times the wait before, that
	// is Base + u x (min(3 x previous, Cap) - Base). Factor plays no part.
	DecorrelatedJitter

	// NoJitter waits d. Use it where something else spreads the callers.
	NoJitter

	jitters = int(NoJitter) + 1
)

var jitterNames = [jitters]string{"full", "equal", "decorrelated", "none"}

// String returns the name that policy files use.
func (j Jitter) String() string {
	return enum.Name(jitterNames[:], j, "jitter")
}

// Backoff is the wait between attempts: before the n-th repeat it is
//
//	d = min(Base x Factor^(n-1), Cap)
//
// spread by Jitter, which never makes it longer than Cap. The zero Backoff is
// full jitter on 50 ms doubling to 5 s.
type Backoff struct {
	// Base is the wait before the first repeat, before jitter. Zero is 50 ms.
	Base time.Duration

	// Factor, at least 1, is how much longer each wait is than the one before.
	// Zero is 2.
	Factor float64

	// Cap is the longest wait. Zero is 5 s, or Base if that is longer.
	Cap time.Duration

	// Jitter is how the waits are spread. Zero is [FullJitter].
	Jitter Jitter

	none bool
}

// NoWait returns a back-off that repeats at once. Only a Retry-After is still
// waited for. A Backoff is one if it equals this one.
func NoWait() Backoff { return Backoff{none: true} }

// Check returns nil, or an error that names every bad field.
func (b Backoff) Check() error { return b.check().Err("retry") }

func (b Backoff) check() check.Faults {
	var faults check.Faults
	if b.none {
		return nil
	}
	if b.Base < 0 {
		faults.Add("Base", b.Base, "must be positive, or 0 for the default; retry.NoWait() repeats at once")
	}
	if !(b.Factor == 0 || b.Factor >= 1 && b.Factor <= math.MaxFloat64) {
		faults.Add("Factor", b.Factor, "must be at least 1 and finite, or 0 for the default")
	}
	if b.Cap < 0 {
		faults.Add("Cap", b.Cap, "must be positive, or 0 for the default")
	} else if f := b.WithDefaults(); f.Cap < f.Base {
		faults.Add("Cap", b.Cap, "must not be less than Base = %v", f.Base)
	}
	if int(b.Jitter) >= jitters {
		faults.Add("Jitter", b.Jitter, "is not one of the modes of package retry")
	}
	return faults
}

// WithDefaults returns b with every zero field filled in.
func (b Backoff) WithDefaults() Backoff {
	if b.none {
		return b
	}
	if b.Base == 0 {
		b.Base = 50 * time.Millisecond
	}
	if b.Factor == 0 {
		b.Factor = 2
	}
	if b.Cap == 0 {
		b.Cap = max(5*time.Second, b.Base)
	}
	return b
}

// Delay returns the wait before the n-th repeat (1 is the first), given the
// wait before, which only [DecorrelatedJitter] looks at, and u, a random number
// in (0, 1].
//
// Whatever the arguments and the fields, the result is at least 1 ns and at
// most Cap; for [NoWait] it is 0.
func (b Backoff) Delay(n int, prev time.Duration, u float64) time.Duration {
	if b.none {
		return 0
	}
	b = b.WithDefaults()
	switch b.Jitter {
	case NoJitter:
		return max(b.ceiling(n), 1)
	case EqualJitter:
		d := b.ceiling(n)
		return max(d/2+part(d-d/2, u), 1)
	case DecorrelatedJitter:
		most := b.Cap
		if prev = max(prev, b.Base); prev <= b.Cap/3 {
			most = 3 * prev
		}
		least := min(b.Base, most)
		return max(least+part(most-least, u), 1)
	default:
		return max(part(b.ceiling(n), u), 1)
	}
}

// ceiling returns min(Base x Factor^(n-1), Cap).
func (b Backoff) ceiling(n int) time.Duration {
	d := float64(b.Base) * math.Pow(b.Factor, float64(max(n, 1)-1))
	if d < float64(b.Cap) { // also false for a d that is infinite or not a number
		return time.Duration(d)
	}
	return b.Cap
}

// delayAfter returns the wait if the dependency asked for a pause of at least
// that long: never sooner than asked, and spread over what follows by the
// back-off or a tenth of the pause, whichever is longer.
func (b Backoff) delayAfter(pause time.Duration, n int, prev time.Duration, u float64) time.Duration {
	d := b.Delay(n, prev, u)
	if pause <= 0 {
		return d
	}
	if b.Jitter == NoJitter {
		return max(d, pause)
	}
	spread := max(d, part(pause/10, u))
	return pause + min(spread, math.MaxInt64-pause)
}

// part returns u x d, from 0 to d for any u.
func part(d time.Duration, u float64) time.Duration {
	if x := u * float64(d); x > 0 && x < float64(d) {
		return time.Duration(x)
	} else if x <= 0 {
		return 0
	}
	return max(d, 0)
}
