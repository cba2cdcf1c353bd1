package retry

import (
	"math"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Budget bounds the attempts beyond the first that the calls to one target
// make together. It is a bucket of tokens, one for each such attempt. Successes
// fund it, so a dependency that fails altogether gets little more load than its
// callers offer. The zero Budget is the standard one.
type Budget struct {
	// Share, at most 1, is what each success earns, in tokens. Zero is 0.2: one
	// attempt in five may be a repeat.
	Share float64

	// PerSecond is what each second earns, in tokens, so that a target with few
	// calls has retries at all. Zero is 10. It ranges from 1e-6, practically
	// nothing, to 1e6.
	PerSecond float64

	// Cap is how many tokens are kept at most. Zero is 100.
	Cap float64

	// Initial is how many tokens a new bucket holds. Zero is 10, or Cap if that
	// is less.
	Initial float64

	// Shared says that the entries of a kit whose budgets are shared and equal
	// draw on one bucket for each target. Otherwise each entry that sets Retry has
	// its own.
	Shared bool

	none bool
}

// NoBudget returns a budget that allows everything. Retries then multiply the
// load on a dependency that is failing: leave it to tests and to calls that
// something else bounds.
func NoBudget() Budget { return Budget{none: true} }

// IsNone reports whether b was made by [NoBudget].
func (b Budget) IsNone() bool { return b.none }

// WithDefaults returns b with every zero field filled in.
func (b Budget) WithDefaults() Budget {
	if b.none {
		return b
	}
	if b.Share == 0 {
		b.Share = 0.2
	}
	if b.PerSecond == 0 {
		b.PerSecond = 10
	}
	if b.Cap == 0 {
		b.Cap = 100
	}
	if b.Initial == 0 {
		b.Initial = min(10, b.Cap)
	}
	return b
}

const (
	minPerSecond, maxPerSecond = 1e-6, 1e6

	// maxFill is the longest that PerSecond alone may take to fill a bucket, in
	// seconds; about three years. Within it a bucket's arithmetic is exact.
	maxFill = 1e8
)

func (b Budget) check() check.Faults {
	var faults check.Faults
	if b.none {
		return nil
	}
	f := b.WithDefaults()
	if !(f.Share > 0 && f.Share <= 1) {
		faults.Add("Share", b.Share, "must be in (0, 1], or 0 for the default")
	}
	if !(f.PerSecond >= minPerSecond && f.PerSecond <= maxPerSecond) {
		faults.Add("PerSecond", b.PerSecond, "must be in [1e-6, 1e6], or 0 for the default")
	}
	if !(f.Cap >= 1 && f.Cap <= math.MaxFloat64) {
		faults.Add("Cap", b.Cap, "must be at least 1, or 0 for the default")
	} else if f.Cap/f.PerSecond > maxFill {
		faults.Add("Cap", b.Cap, "must not exceed %g x PerSecond = %g", maxFill, maxFill*f.PerSecond)
	}
	if !(f.Initial > 0 && f.Initial <= f.Cap) {
		faults.Add("Initial", b.Initial, "must be in (0, Cap = %g], or 0 for the default", f.Cap)
	}
	return faults
}
