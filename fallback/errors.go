package fallback

import "errors"

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

// WriteError is one of the kit's own errors, with which a call ends that may change
// something: a refusal, or a limit that has passed. Such a call has no fallback:
// nothing was stored for later, and nothing stands in for the answer. It unwraps
// to the error, and gRPC sees its status.
//
// It is the end of an HTTP request, an RPC, unary or a stream, or holdfast.Do. What
// the dependency or the wire said comes back as it is.
type WriteError struct {
	Err error // the refusal, or what says that the time was over

	// Sent says that the dependency may have got the call, so that it may have
	// taken effect: nobody on this side knows. False: it provably was not sent.
	Sent bool
}

// Error returns the error's text and then what it means for a write.
func (e *WriteError) Error() string {
	if e.Sent {
		return e.Err.Error() + "; the outcome is unknown: the call may have taken effect; nothing was stored or pretended"
	}
	return e.Err.Error() + "; the call was not sent; nothing was stored or pretended"
}

// Unwrap returns the error.
func (e *WriteError) Unwrap() error { return e.Err }

// Timeout reports whether the error is a limit's; url.Error asks for it.
func (e *WriteError) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.Err)
	return ok && t.Timeout()
}
