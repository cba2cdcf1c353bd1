// Package fallback answers a read that its dependency failed to answer.
//
// Only a ReadOnly call gets an answer that is not the dependency's own. A write
// gets its error: nothing was stored and nothing is pretended.
package fallback

import (
	"context"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/check"
)

// Policy says what a read is answered with when its call has failed.
type Policy struct {
	// Answer computes the answer. It is required. It returns what the call
	// would have returned: a *http.Response, a proto.Message of the reply's
	// type, or the T of holdfast.Do; nil is no answer, and leaves the call its own
	// end. It runs on the caller's goroutine, bounded
	// by the caller's context. If it fails, the caller gets an [*Error].
	Answer func(ctx context.Context, failure Failure) (any, error)

	off bool
}

// Failure is what the fallback is told of the call that failed.
type Failure struct {
	Info     call.Info
	Class    call.Class
	Err      error // the error the caller would get; nil for an HTTP response
	Code     int   // HTTP status or gRPC code, if there was an answer
	Attempts int   // attempts that were admitted; 0 if the first was refused
}

// Off returns a policy that is switched off: a failed call returns its error.
// Unlike nil, which inherits, it is a decision of its own.
func Off() *Policy { return &Policy{off: true} }

// IsOff reports whether p was made by [Off] or is a copy of such a value.
func (p *Policy) IsOff() bool { return p != nil && p.off }

// Check returns every bad field.
func (p Policy) Check() check.Faults {
	var faults check.Faults
	if p.Answer == nil && !p.off {
		faults.Add("Answer", nil, "is missing")
	}
	return faults
}

// Applies reports whether a call of this safety that ended in this class may be
// answered by a fallback. A client's own fault, a cancelled call and an answer
// of the dependency's own come back unchanged.
func Applies(safety call.Safety, class call.Class) bool {
	if safety != call.ReadOnly {
		return false
	}
	return class == call.Refused || class == call.Throttled || class.Failed()
}

// Error is the end of a call whose fallback failed too. The status of the call
// is the primary error's.
type Error struct {
	Primary  error // why the fallback was asked; nil if the failure is an HTTP response
	Fallback error // why it could not answer
}

// Error returns both texts.
func (e *Error) Error() string {
	text := "fallback: " + e.Fallback.Error()
	if e.Primary != nil {
		text += "; answering for: " + e.Primary.Error()
	}
	return text
}

// Unwrap returns the primary error first.
func (e *Error) Unwrap() []error {
	if e.Primary == nil {
		return []error{e.Fallback}
	}
	return []error{e.Primary, e.Fallback}
}
