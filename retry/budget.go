package retry

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// Budget bounds the attempts beyond the first that the calls to one target
// make together. It is a bucket of tokens, one for each such attempt. Successes
// fund it, so a dependency that fails altogether gets little more load than its
// callers offer. The zero Budget is the standard one.
type Budget struct {
	// Share, at most 1, is what each success earns, in tokens. Zero is 0.2: one attempt in
	// five may be a repeat.
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

// Check returns every bad field.
func (b Budget) Check() check.Faults {
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

// Bucket is the running state of a [Budget] for one target. A nil *Bucket is
// one without bounds.
//
// It is a single word: the moment empty at which the bucket was, or would have
// been, without tokens. What it holds at a moment now is (now - empty) in time,
// worth PerSecond tokens a second, at most Cap. A token taken moves the moment
// forward, one earned moves it back, and time itself earns without a write.
type Bucket struct {
	empty atomic.Int64 // a mono.Instant

	// In units of the time in which the reserve earns as much.
	earn, cost, full time.Duration

	budget Budget
}

// NewBucket returns a bucket with b's initial tokens, or nil for [NoBudget]. A
// budget with faults is taken as the standard one.
func NewBucket(b Budget) *Bucket { return NewBucketAt(b, mono.Now()) }

// NewBucketAt is NewBucket for a caller that has read the clock.
func NewBucketAt(b Budget, now mono.Instant) *Bucket {
	if b.none {
		return nil
	}
	if b.Check() != nil {
		b = Budget{}
	}
	b = b.WithDefaults()
	k := &Bucket{budget: b}
	k.earn, k.cost, k.full = k.worth(b.Share), k.worth(1), k.worth(b.Cap)
	k.empty.Store(int64(now.Add(-k.worth(b.Initial))))
	return k
}

// worth returns how long the reserve takes to earn so many tokens.
func (k *Bucket) worth(tokens float64) time.Duration {
	return time.Duration(math.Round(tokens / k.budget.PerSecond * float64(time.Second)))
}

// EarnAt notes a success at the moment now. While the bucket is full it writes
// nothing.
func (k *Bucket) EarnAt(now mono.Instant) {
	if k != nil {
		k.add(k.earn, now)
	}
}

// ReturnAt gives back a token that was taken for an attempt that is not made.
func (k *Bucket) ReturnAt(now mono.Instant) {
	if k != nil {
		k.add(k.cost, now)
	}
}

// add adds what the reserve earns in d.
func (k *Bucket) add(d time.Duration, now mono.Instant) {
	for {
		empty := k.empty.Load()
		fullest := int64(now) - int64(k.full)
		if empty <= fullest {
			return
		}
		if k.empty.CompareAndSwap(empty, max(empty-int64(d), fullest)) {
			return
		}
	}
}

// TakeAt takes a token at the moment now and reports whether there was one.
func (k *Bucket) TakeAt(now mono.Instant) bool {
	if k == nil {
		return true
	}
	for {
		empty := k.empty.Load()
		next := max(empty, int64(now)-int64(k.full)) + int64(k.cost)
		if next > int64(now) {
			return false
		}
		if k.empty.CompareAndSwap(empty, next) {
			return true
		}
	}
}

// TokensAt returns how many tokens there are at the moment now.
func (k *Bucket) TokensAt(now mono.Instant) float64 {
	if k == nil {
		return math.Inf(1)
	}
	held := now.Sub(mono.Instant(k.empty.Load()))
	if held >= k.full {
		return k.budget.Cap
	}
	return max(held, 0).Seconds() * k.budget.PerSecond
}

// Tokens returns how many tokens there are now; +Inf for a nil bucket.
func (k *Bucket) Tokens() float64 { return k.TokensAt(mono.Now()) }

// FullAt reports whether the bucket is full at the moment now, so that dropping
// it for a new one would never allow more.
func (k *Bucket) FullAt(now mono.Instant) bool {
	return k == nil || k.empty.Load() <= int64(now)-int64(k.full)
}
