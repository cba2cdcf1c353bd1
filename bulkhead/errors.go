package bulkhead

import (
	"context"
	"errors"
	"strconv"

	"github.com/holdfast-go/holdfast/internal/enum"
)

// ErrFull is matched by every refusal of a bulkhead. The refused attempt was
// not sent.
var ErrFull = errors.New("bulkhead: full")

// Reason is why a bulkhead refused an attempt.
type Reason uint8

// The reasons. The zero Reason is none of them.
const (
	// QueueFull: no permit was free and nobody more may wait.
	QueueFull Reason = iota + 1

	// WaitedOut: no permit came within MaxWait.
	WaitedOut

	// ContextEnded: the attempt's context ended before a permit came.
	ContextEnded
)

var reasons = []string{"", "queue_full", "waited_out", "context_ended"}

// String returns the reason in lower snake case.
func (r Reason) String() string {
	return enum.Name(reasons, r, "reason")
}

// FullError is a refusal. It matches [ErrFull] and, if the context ended the
// wait, the context's error and its cause.
type FullError struct {
	key    string
	reason Reason
	ended  error // the context's error, if that ended the wait
	cause  error // and its cause
}

// Key returns the name of the bulkhead.
func (e *FullError) Key() string { return e.key }

// Reason returns why there was no permit.
func (e *FullError) Reason() Reason { return e.reason }

// Error returns a text that begins with "bulkhead: ".
func (e *FullError) Error() string {
	text := "bulkhead: " + strconv.Quote(e.key) + " is full"
	switch e.reason {
	case WaitedOut:
		text += ", no permit within MaxWait"
	case ContextEnded:
		text += ", no permit before the context ended"
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Is reports whether target is [ErrFull] or the error of the context that ended
// the wait. A context that was cancelled because a limit has passed counts as the
// deadline that its cause is, and not as a caller who is gone.
func (e *FullError) Is(target error) bool {
	if target == context.Canceled && errors.Is(e.cause, context.DeadlineExceeded) {
		return false
	}
	return target == ErrFull || e.ended != nil && target == e.ended
}

// Unwrap returns the cause of the context that ended the wait, or nil.
func (e *FullError) Unwrap() error { return e.cause }
