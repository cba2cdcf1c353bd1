package holdfast

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/timeout"
)

// ofWrite returns the call's error as its caller gets it.
func (c *Call) ofWrite(err error) error {
	if err == nil {
		return nil
	}
	return ofWrite(c.info.Safety, &c.last, c.sent, err)
}

// SentBefore reports whether an attempt before the one under way may have reached
// the dependency.
func (c *Call) SentBefore() bool { return c.sent }

// OfWrite returns end.Err as the caller of the call gets it. [Call.Run] and
// [Call.RunHedged] do that themselves; an adapter whose calls outlive them asks
// for it. sentBefore says that an attempt before the one that end.Result is of may
// have reached the dependency; see [Call.SentBefore]. It does not ask c, which
// another goroutine may be at.
func (c *Call) OfWrite(end *CallEnd, sentBefore bool) error {
	if end.Err == nil {
		return nil
	}
	return ofWrite(end.Info.Safety, &end.Result, sentBefore, end.Err)
}

// ofWrite says in one of the kit's own errors what it means for a call that may
// change something. What others said comes back as it is.
func ofWrite(safety call.Safety, last *call.Result, sentBefore bool, err error) error {
	if safety == call.ReadOnly {
		return err
	}
	switch last.Class {
	case call.Refused:
	case call.TimedOut, call.Canceled: // the end of a stream that nobody read says nothing, whatever it was
		if !ownLimit(last.Err) {
			return err
		}
	default:
		return err
	}
	sent := sentBefore || !last.NotSent
	if inner, ok := errors.AsType[*fallback.WriteError](err); ok && inner.Sent == sent {
		return err // a kit further in has said so
	}
	return &fallback.WriteError{Err: err, Sent: sent}
}

// ownLimit reports whether the error is a time limit's that has passed, in the kit's
// words or those of the caller's context and not the wire's or the function's.
func ownLimit(err error) bool {
	if err == context.DeadlineExceeded {
		return true
	}
	if _, ours := errors.AsType[*timeout.Error](err); ours {
		return true
	}
	callers, ok := errors.AsType[*timeout.CallerError](err)
	return ok && callers.Err == context.DeadlineExceeded
}
