package holdfast

import (
	"errors"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/internal/enum"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Cause is why the kit turned an attempt away.
type Cause uint8

// The causes.
const (
	// CauseOther: what is needed for a repeat could not be had, such as the body.
	CauseOther Cause = iota

	// CauseOpen, CauseHalfOpen, CauseForced, CauseRamp: the breaker refused; see
	// breaker.Cause.
	CauseOpen
	CauseHalfOpen
	CauseForced
	CauseRamp

	// CauseBulkhead: there was no permit.
	CauseBulkhead

	// CauseBudget: the retry budget is used up.
	CauseBudget

	// CauseNoTime: the next attempt could not begin before the call must end.
	CauseNoTime

	// CauseRetryAfter: the dependency asks for a longer pause than the policy
	// allows.
	CauseRetryAfter

	// CauseFloor: less time is left than the policy's Floor asks for.
	CauseFloor

	// CauseExpired: the caller's deadline had passed before the first attempt.
	CauseExpired

	causes = int(CauseExpired) + 1
)

var causeNames = [causes]string{
	"other", "open", "half_open", "forced_open", "ramp",
	"bulkhead", "budget", "no_time", "retry_after", "floor", "expired",
}

// String returns the cause in lower snake case, as metrics show it.
func (c Cause) String() string {
	return enum.Name(causeNames[:], c, "cause")
}

// Causes returns all causes.
func Causes() []Cause {
	all := make([]Cause, causes)
	for i := range all {
		all[i] = Cause(i)
	}
	return all
}

func causeOf(err error) Cause {
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		switch open.Cause() {
		case breaker.CauseHalfOpen:
			return CauseHalfOpen
		case breaker.CauseForced:
			return CauseForced
		case breaker.CauseRamp:
			return CauseRamp
		}
		return CauseOpen
	}
	for _, known := range [...]struct {
		err   error
		cause Cause
	}{
		{bulkhead.ErrFull, CauseBulkhead}, {retry.ErrBudget, CauseBudget}, {retry.ErrNoTime, CauseNoTime},
		{retry.ErrRetryAfter, CauseRetryAfter}, {timeout.ErrFloor, CauseFloor},
	} {
		if errors.Is(err, known.err) {
			return known.cause
		}
	}
	return CauseOther
}
