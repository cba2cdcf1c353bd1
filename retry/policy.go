package retry

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Unlimited as MaxAttempts sets no number: the budget and the caller's deadline
// bound the attempts. It needs a budget.
const Unlimited = math.MaxInt

// Policy says when a call gets another attempt. The zero Policy is the standard
// one: 3 attempts, the zero [Backoff] and the zero [Budget].
type Policy struct {
	// MaxAttempts is the number of attempts that a call gets at most, the first
	// included: 1 is no retry, 0 is 3, a negative number is an error. See also
	// [Unlimited].
	MaxAttempts int

	// Backoff is the wait before each further attempt.
	Backoff Backoff

	// Budget bounds the attempts beyond the first that the calls to one target
	// make together.
	Budget Budget

	// Hedge sends another attempt while the first is still unanswered. The zero
	// Hedge sends none.
	Hedge Hedge

	// IdempotencyKey sends a key with each call that is neither Idempotent nor
	// ReadOnly and carries none: one key per call, the same on every attempt, in
	// the header Idempotency-Key or the metadata idempotency-key. The call may
	// then be repeated. Turn it on only for a dependency that honours the key. The
	// calls of holdfast.Do have neither, and get no key.
	IdempotencyKey bool

	// EvenNested lets a call retry that is made inside an attempt of another
	// one which may be retried itself. The attempts multiply then.
	EvenNested bool

	// RetryAfterCap is the longest pause a dependency may ask for. If it asks
	// for more, the call ends at once with [ErrRetryAfter]. Zero is 1 minute.
	RetryAfterCap time.Duration

	off bool
}

// Off returns a policy that never repeats a call. Unlike nil, which inherits,
// it is a decision of its own.
func Off() *Policy { return &Policy{off: true} }

// IsOff reports whether p was made by [Off] or is a copy of such a value.
func (p *Policy) IsOff() bool { return p != nil && p.off }

// Check returns nil, or an error that names every bad field.
func (p Policy) Check() error { return p.check().Err("retry") }

func (p Policy) check() check.Faults {
	var faults check.Faults
	if p.off {
		return nil
	}
	if p.MaxAttempts < 0 {
		faults.Add("MaxAttempts", p.MaxAttempts, "must be at least 1, or 0 for the default")
	}
	if p.MaxAttempts == Unlimited && p.Budget.IsNone() {
		faults.Add("MaxAttempts", nil, "retry.Unlimited needs a Budget")
	}
	faults.In("Backoff", p.Backoff.check())
	faults.In("Budget", p.Budget.check())
	faults.In("Hedge", p.checkHedge())
	if p.RetryAfterCap < 0 {
		faults.Add("RetryAfterCap", p.RetryAfterCap, "must be positive, or 0 for the default")
	}
	return faults
}

// WithDefaults returns p with every zero field filled in, those of Backoff, Budget
// and Hedge too.
func (p Policy) WithDefaults() Policy {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 3
	}
	if p.RetryAfterCap == 0 {
		p.RetryAfterCap = time.Minute
	}
	p.Backoff = p.Backoff.WithDefaults()
	p.Budget = p.Budget.WithDefaults()
	p.Hedge = p.Hedge.WithDefaults()
	return p
}
