package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// Result returns the result of the call: of its last attempt that reached the
// wire, or else the refusal of the first.
func (c *Call) Result() call.Result { return c.last }

// made returns how many attempts were made.
func (c *Call) made() int {
	if c.walk != nil {
		return c.walk.made
	}
	return c.attempts
}

// Stopped returns why the call ended short of its attempts, nil if it did not.
func (c *Call) Stopped() *retry.StoppedError {
	if c.stopped == nil {
		return nil
	}
	return &retry.StoppedError{Reason: c.stopped, Attempts: c.made(), Last: c.last.Err}
}

// Err returns the error of the call, nil for an OK and where the answer is a
// response of the dependency's.
func (c *Call) Err() error {
	if c.stopped != nil && c.last.Err != nil {
		return c.Stopped()
	}
	return c.last.Err
}

// callerDone reports whether the caller's context is done. Its deadline counts from
// the moment it has passed, which others may notice before its timer runs.
func callerDone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && !mono.Now().Before(mono.Of(deadline))
}

// callerEnd is the result of a call whose caller's context is done.
func callerEnd(ctx context.Context) call.Result {
	if ctx.Err() == context.Canceled { // whatever its cause
		return call.Result{Class: call.Canceled, Err: deadline.Caller(ctx)}
	}
	err := deadline.Caller(ctx)
	if err == nil {
		err = context.DeadlineExceeded // passed, though its timer has yet to run
	}
	return call.Result{Class: call.TimedOut, Err: err}
}

// refused is the result of an attempt that the kit turned away.
func refused(err error) call.Result {
	return call.Result{Class: call.Refused, Err: err, NotSent: true}
}

// turnedAway is the result of an attempt that ended in the bulkhead's queue.
func turnedAway(ctx context.Context, err error) call.Result {
	if ctx.Err() == nil {
		return refused(err)
	}
	end := callerEnd(ctx)
	end.NotSent = true
	return end
}

// Amends reports whether the policy may amend the adapter's verdict.
func (c *Call) Amends() bool { return c.method.classify != nil }

// Classify lets the policy amend the adapter's verdict.
func (c *Call) Classify(ctx context.Context, res call.Result) call.Result {
	if c.method.classify != nil {
		err := res.Err
		if res = c.method.classify(ctx, c.info, res); res.Err == nil {
			res.Err = err // amended is the verdict, not what happened
		}
	}
	if !res.Class.Valid() {
		res.Class = call.ServerFault
	}
	return res
}
