package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrExceeded is matched by every error that says one of the kit's limits
// has passed. Such an error matches [context.DeadlineExceeded] too.
var ErrExceeded = errors.New("timeout: limit exceeded")

// ErrFloor is matched by the refusal of an attempt for which less time is left
// than [Limits].Floor asks for: a [*FloorError]. Nothing of that attempt was sent.
var ErrFloor = errors.New("timeout: too little time left to begin")

// Error says which limit has passed.
type Error struct {
	Limit  string        // a field of Limits, such as "Attempt"; or "ProbeTimeout", of breaker.Config
	After  time.Duration // the limit's length
	Detail string        // what the wire said when it was interrupted, if it says more
}

// Error returns the text "timeout: Attempt limit of 10s exceeded", and the detail
// after a colon.
func (e *Error) Error() string {
	text := fmt.Sprintf("timeout: %s limit of %v exceeded", e.Limit, e.After)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is reports that e is an [ErrExceeded] and a [context.DeadlineExceeded].
func (e *Error) Is(target error) bool {
	return target == ErrExceeded || target == context.DeadlineExceeded
}

// Timeout returns true; url.Error asks for it.
func (e *Error) Timeout() bool { return true }

// FloorError is the refusal of an attempt that could not finish in time.
type FloorError struct {
	Left  time.Duration // until the caller's deadline or the end of Total
	Floor time.Duration // Limits.Floor
}

// Error says how much time is left and how much is asked for.
func (e *FloorError) Error() string {
	return fmt.Sprintf("timeout: %v left to begin an attempt, Floor is %v", e.Left, e.Floor)
}

// Is reports that e is an [ErrFloor].
func (e *FloorError) Is(target error) bool { return target == ErrFloor }

// Timeout returns true: the caller's deadline is too near.
func (e *FloorError) Timeout() bool { return true }

// CallerError is the end of a call by its own caller, cancellation or deadline, where
// the caller's context has a cause of its own, as context.WithCancelCause gives it one.
// Without that the error is the context's.
type CallerError struct {
	Err   error // context.Canceled or context.DeadlineExceeded
	Cause error // context.Cause of the caller's context
}

// Error returns the cause's text after that of the context's error.
func (e *CallerError) Error() string { return e.Err.Error() + ": " + e.Cause.Error() }

// Unwrap returns the context's error and its cause.
func (e *CallerError) Unwrap() []error { return []error{e.Err, e.Cause} }

// Timeout reports whether the caller's deadline has passed.
func (e *CallerError) Timeout() bool { return e.Err == context.DeadlineExceeded }
