package retry

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// NoLimit as Input.Left says that nothing bounds the call's time.
const NoLimit time.Duration = math.MaxInt64

// Input is what is known at the end of an attempt.
type Input struct {
	// Attempt is how many attempts have been made, at least 1.
	Attempt int

	// Before is how many of the attempts came before the back-off began anew.
	// Zero is none.
	Before int

	// Result is the verdict on the last of them.
	Result call.Result

	// Safety is what repeating the call may do, after the policy's say;
	// SafetyUnknown counts as Unsafe.
	Safety call.Safety

	// Keyed says that the call carries an idempotency key.
	Keyed bool

	// Probe says that the attempt was a breaker's probe.
	Probe bool

	// Nested says that the call was made inside an attempt of another one,
	// which does the repeating.
	Nested bool

	// CallerDone says that the caller's context is done.
	CallerDone bool

	// Left is the time until the call must end, less what an attempt needs at
	// least. Zero or less is none; [NoLimit] is no bound.
	Left time.Duration

	// Refusal is what the breaker would answer to an attempt now; nil if it
	// would admit one.
	Refusal error

	// Bucket is the budget of the call's target; nil is one without bounds. Tell it
	// of each success by [Bucket.Earn].
	Bucket *Bucket

	// PrevDelay is the call's last Decision.Delay; zero before the first.
	PrevDelay time.Duration

	// U is a random number in (0, 1].
	U float64
}

// Decision is the answer to an [Input].
type Decision struct {
	// Again says that another attempt is to be made.
	Again bool

	// Delay is how long to wait before it.
	Delay time.Duration

	// Reason is why a call that would otherwise be repeated is not: the
	// Refusal, [ErrRetryAfter], [ErrNoTime] or [ErrBudget]. It is nil if Again,
	// and at a natural end: a result that is not to be repeated, a caller who
	// is gone, all attempts used.
	Reason error
}

// Next decides whether the call gets another attempt. It is pure but for the
// token that it takes from in.Bucket when it answers Again, and only then: the
// token is paid before the wait, so that calls that wait at the same time do
// not all count on the same one. Give it back with [Bucket.Return] if the attempt
// is not made after all.
func (p *Policy) Next(in Input) Decision { return p.NextAt(in, mono.Now()) }

// NextAt is for the kit's own packages: Next for a caller that has read the clock.
func (p *Policy) NextAt(in Input, now mono.Instant) Decision {
	if !Repeatable(in.Result, in.Safety, in.Keyed) || in.CallerDone || in.Probe || in.Nested || p.off {
		return Decision{}
	}
	f := p.WithDefaults()
	if in.Attempt >= f.MaxAttempts {
		return Decision{}
	}
	if in.Refusal != nil {
		return Decision{Reason: in.Refusal}
	}
	if in.Result.RetryAfter > f.RetryAfterCap {
		return Decision{Reason: ErrRetryAfter}
	}
	delay := in.Result.RetryAfter
	if !in.Result.Exact {
		n, prev := in.Attempt-in.Before, in.PrevDelay
		if n == 1 {
			prev = 0 // that was another back-off's
		}
		delay = f.Backoff.delayAfter(in.Result.RetryAfter, n, prev, in.U)
	}
	if delay >= in.Left {
		return Decision{Reason: ErrNoTime}
	}
	if !in.Bucket.TakeAt(now) {
		return Decision{Reason: ErrBudget}
	}
	return Decision{Again: true, Delay: delay}
}

// Repeatable reports whether an attempt that ended with r may be followed by
// another one as far as the dependency's state is concerned, in a call of that
// safety, with or without an idempotency key.
func Repeatable(r call.Result, s call.Safety, keyed bool) bool {
	switch r.Class {
	case call.Throttled, call.ServerFault, call.Unavailable, call.TimedOut:
	case call.ClientFault:
		if !r.Retry {
			return false
		}
	default:
		return false
	}
	return !r.NoRetry && (s.Repeatable() || keyed || r.NotSent)
}
