package retry

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// Bucket is the running state of a [Budget] for one target. A nil *Bucket is
// one without bounds.
type Bucket struct {
	now atomic.Pointer[fill]
	mu  sync.Mutex // held to replace it
}

// fill is what a bucket holds under one budget.
//
// It is a single word: the moment empty at which the bucket was, or would have
// been, without tokens. What it holds at a moment now is (now - empty) in time,
// worth PerSecond tokens a second, at most Cap. A token taken moves the moment
// forward, one earned moves it back, and time itself earns without a write.
type fill struct {
	empty atomic.Int64 // a packed mono.Instant, or moved

	// In units of the time in which the reserve earns as much.
	earn, cost, full time.Duration

	budget Budget
}

// moved, as fill.empty, says that what was held is about to be found in another
// fill.
const moved = math.MaxInt64

// NewBucket returns a bucket with b's initial tokens, or nil for [NoBudget]. The
// error names every fault of b.
func NewBucket(b Budget) (*Bucket, error) {
	if err := b.fault(); err != nil {
		return nil, err
	}
	return NewBucketAt(b, mono.Now()), nil
}

func (b Budget) fault() error {
	var fs check.Faults
	fs.In("Budget", b.check())
	return fs.Err("retry")
}

// NewBucketAt is for the kit's own packages: NewBucket for a caller that has checked b and
// read the clock.
func NewBucketAt(b Budget, now mono.Instant) *Bucket {
	if b.none {
		return nil
	}
	k := &struct { // in one object
		Bucket
		first fill
	}{}
	k.first.set(b)
	k.first.hold(k.first.budget.Initial, now)
	k.now.Store(&k.first)
	return &k.Bucket
}

func (f *fill) set(b Budget) {
	f.budget = b.WithDefaults()
	f.earn, f.cost, f.full = f.worth(f.budget.Share), f.worth(1), f.worth(f.budget.Cap)
}

func (f *fill) hold(tokens float64, now mono.Instant) {
	f.empty.Store(now.Add(-f.worth(tokens)).Pack())
}

// worth returns how long the reserve takes to earn a number of tokens.
func (f *fill) worth(tokens float64) time.Duration {
	return time.Duration(math.Round(tokens / f.budget.PerSecond * float64(time.Second)))
}

// tokens returns what a fill holds that is empty as of that moment.
func (f *fill) tokens(empty int64, now mono.Instant) float64 {
	held := now.Sub(mono.Unpack(empty))
	if held >= f.full {
		return f.budget.Cap
	}
	return max(held, 0).Seconds() * f.budget.PerSecond
}

// read returns what the bucket holds.
func (k *Bucket) read() (f *fill, empty int64) {
	for {
		f = k.now.Load()
		if empty = f.empty.Load(); empty != moved {
			return f, empty
		}
		runtime.Gosched() // whoever moves it is at the next line
	}
}

// Update puts another budget in force. The bucket keeps the tokens it holds, at
// most the new Cap; none is lost that is given back meanwhile. A bucket without
// bounds stays so, and one with bounds does not lose them: for either [NoBudget]
// and another budget are an error, as are the faults of b, which it names; nothing
// is changed then.
func (k *Bucket) Update(b Budget) error {
	if err := b.fault(); err != nil {
		return err
	}
	if (k == nil) != b.none {
		return errBounds
	}
	k.UpdateAt(b, mono.Now())
	return nil
}

var errBounds = errors.New("retry: Budget: a bucket neither gets nor loses its bounds; make another")

// UpdateAt is for the kit's own packages: Update for a caller that has checked b and
// read the clock. It leaves a bucket alone that is to get or lose its bounds.
func (k *Bucket) UpdateAt(b Budget, now mono.Instant) {
	if k == nil || b.none {
		return
	}
	next := &fill{}
	next.set(b)
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.now.Load()
	next.hold(min(old.tokens(old.empty.Swap(moved), now), next.budget.Cap), now)
	k.now.Store(next)
}

// Take takes a token for an attempt beyond the first and reports whether there was
// one. A nil bucket has always one. [Policy.Next] does it for who asks that.
func (k *Bucket) Take() bool { return k.TakeAt(mono.Now()) }

// Earn notes a success: tell it of each attempt that succeeded. On a nil bucket it does
// nothing.
func (k *Bucket) Earn() { k.EarnAt(mono.Now()) }

// Return gives back a token that was taken, by Take or [Policy.Next], for an attempt that
// is not made.
func (k *Bucket) Return() { k.ReturnAt(mono.Now()) }

// EarnAt is for the kit's own packages: Earn for a caller that has read the clock. While
// the bucket is full it writes nothing.
func (k *Bucket) EarnAt(now mono.Instant) {
	if !k.FullAt(now) {
		k.add(now, true)
	}
}

// ReturnAt is for the kit's own packages: Return for a caller that has read the clock.
func (k *Bucket) ReturnAt(now mono.Instant) {
	if !k.FullAt(now) {
		k.add(now, false)
	}
}

// add adds what a success earns, or else a token.
func (k *Bucket) add(now mono.Instant, success bool) {
	for {
		f, empty := k.read()
		fullest := now.Pack() - int64(f.full)
		if empty <= fullest {
			return
		}
		d := f.cost
		if success {
			d = f.earn
		}
		if f.empty.CompareAndSwap(empty, max(empty-int64(d), fullest)) {
			return
		}
	}
}

// TakeAt is for the kit's own packages: Take for a caller that has read the clock.
func (k *Bucket) TakeAt(now mono.Instant) bool {
	if k == nil {
		return true
	}
	for {
		f, empty := k.read()
		next := max(empty, now.Pack()-int64(f.full)) + int64(f.cost)
		if next > now.Pack() {
			return false
		}
		if f.empty.CompareAndSwap(empty, next) {
			return true
		}
	}
}

// TokensAt is for the kit's own packages: Tokens for a caller that has read the clock.
func (k *Bucket) TokensAt(now mono.Instant) float64 {
	if k == nil {
		return math.Inf(1)
	}
	f, empty := k.read()
	return f.tokens(empty, now)
}

// Tokens returns how many tokens there are now; +Inf for a nil bucket.
func (k *Bucket) Tokens() float64 { return k.TokensAt(mono.Now()) }

// Full reports whether the bucket is full now, so that dropping it for a new one would
// never allow more. A nil bucket is full.
func (k *Bucket) Full() bool { return k.FullAt(mono.Now()) }

// Budget returns the budget in force, with its defaults filled in.
func (k *Bucket) Budget() Budget {
	if k == nil {
		return NoBudget()
	}
	f, _ := k.read()
	return f.budget
}

// FullAt is for the kit's own packages: Full for a caller that has read the clock.
func (k *Bucket) FullAt(now mono.Instant) bool {
	if k == nil {
		return true
	}
	f := k.now.Load()
	return f.empty.Load() <= now.Pack()-int64(f.full)
}
