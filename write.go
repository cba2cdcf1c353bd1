package holdfast

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/timeout"
)

// ofWrite says in an error of the kit's own what it means for a call that may
// change something. What others said comes back as it is.
func (c *Call) ofWrite(err error) error {
	if err == nil || c.info.Safety == call.ReadOnly {
		return err
	}
	if c.last.Class == call.Refused || c.last.Class == call.TimedOut && ownLimit(c.last.Err) {
		return &fallback.WriteError{Err: err, Sent: c.sent || !c.last.NotSent}
	}
	return err
}

// ownLimit reports whether the error of a time limit is the kit's word and not the
// wire's or the function's.
func ownLimit(err error) bool {
	if err == context.DeadlineExceeded {
		return true
	}
	if _, ours := errors.AsType[*timeout.Error](err); ours {
		return true
	}
	_, callers := errors.AsType[*timeout.CallerError](err)
	return callers
}
