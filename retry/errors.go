package retry

import (
	"errors"
	"strconv"
	"strings"
)

// Why a call ended before its attempts were used up, beside what a breaker or a
// bulkhead has to say.
var (
	// ErrBudget: this client's retry budget for the target is used up.
	ErrBudget = errors.New("retry: this client's budget for the target is used up")

	// ErrNoTime: the next attempt could not start before the call must end.
	ErrNoTime = errors.New("retry: no time is left for another attempt")

	// ErrRetryAfter: the dependency asked for a longer pause than RetryAfterCap.
	ErrRetryAfter = errors.New("retry: the dependency asked for a longer pause than the policy allows")
)

// StoppedError is the error of a call that ended short of its attempts although
// its last failure may be repeated. It matches its reason and its last failure
// with errors.Is and errors.As.
//
// It is made here, in the client; nothing about it came from the dependency but
// Last.
type StoppedError struct {
	// Reason is why there was no further attempt: ErrBudget, ErrNoTime,
	// ErrRetryAfter, or the refusal of a breaker or bulkhead. An open circuit
	// in it says that the circuit is open now, not that nothing was sent.
	Reason error

	// Attempts is how many attempts were made.
	Attempts int

	// Last is the last attempt's failure. It is nil if that was an HTTP
	// response.
	Last error
}

// Error returns a text that begins with "retry: ".
func (e *StoppedError) Error() string {
	var b strings.Builder
	b.WriteString("retry: stopped after ")
	b.WriteString(strconv.Itoa(e.Attempts))
	b.WriteString(" attempt")
	if e.Attempts != 1 {
		b.WriteByte('s')
	}
	if e.Reason != nil {
		b.WriteString(": ")
		b.WriteString(strings.TrimPrefix(e.Reason.Error(), "retry: "))
	}
	if e.Last != nil {
		b.WriteString("; last failure: ")
		b.WriteString(e.Last.Error())
	}
	return b.String()
}

// Unwrap returns the last failure and the reason, in that order: what
// errors.As finds is the failure's own type and status first.
func (e *StoppedError) Unwrap() []error {
	errs := make([]error, 0, 2)
	for _, err := range [...]error{e.Last, e.Reason} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
