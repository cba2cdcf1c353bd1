package holdfast

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Do makes a call that is neither gRPC nor HTTP, such as a database query, by the
// policy of info.Method in k's table, or of Default. info.Safety is what is
// known of fn; unknown is Unsafe, and so gets one attempt: nothing carries a key of
// Retry.IdempotencyKey to what fn calls. If fn sends one of its own, the call is
// Idempotent.
//
// An attempt ends when fn returns, on the caller's goroutine: fn must heed its
// context for a limit to have an effect. Where the policy hedges, several fn may
// run beside each other, each on a goroutine of its own; Do returns when all have
// returned, so one that does not heed its context holds it up. An error of fn's
// counts as ServerFault; one that matches context.DeadlineExceeded as TimedOut,
// context.Canceled as Canceled, and a refusal of another kit's as Refused.
// Policy.Classify may say otherwise.
//
// The error is fn's own, or with why there was no further attempt around it, a
// *retry.StoppedError; or the kit's: it matches breaker.ErrOpen, bulkhead.ErrFull,
// timeout.ErrExceeded or timeout.ErrFloor. Of a call that is not ReadOnly the kit's own
// is a *fallback.WriteError.
//
// The T of a fallback's answer must be the T of the call.
func Do[T any](ctx context.Context, k *Kit, info call.Info, fn func(context.Context) (T, error)) (T, error) {
	var none T
	if k == nil {
		return none, errNilKit
	}
	if fn == nil {
		return none, errors.New("holdfast: the function to call is nil")
	}
	t, err := k.now.Load().plain, error(nil)
	if t == nil {
		if t, err = k.bindPlain(); err != nil {
			return none, err
		}
	}
	var c Call
	c.info = info
	ctx, err = c.begin(ctx, t.find(info.Method), &keyless)
	if err != nil {
		return none, err
	}
	if c.Computes() {
		c.TakesBy(func(answer any, failure error) error {
			if _, ok := answer.(T); !ok && failure == nil {
				failure = fmt.Errorf("holdfast: the fallback of %q returned a %T, the call returns a %T", info.Method, answer, *new(T))
			}
			return failure
		})
	}
	if c.Hedged() {
		return doHedged(ctx, c, fn)
	}
	var value T
	answer, err := c.Run(ctx, func(ctx context.Context, n int) {
		if c.Watched() {
			ctx = c.Sending(ctx, n, nil)
		}
		v, err := fn(ctx)
		if err != nil {
			c.End(call.Result{Class: classOf(err), Err: err})
			return
		}
		value = v
		c.Succeed()
	})
	if answer == nil && err == nil {
		return value, nil
	}
	return answered(value, answer, err)
}

// keyless is what is known of every call by [Do].
var keyless = Terms{Keyless: true}

// doHedged is Do for a call that may be hedged: each attempt has a value of its
// own.
func doHedged[T any](ctx context.Context, c Call, fn func(context.Context) (T, error)) (T, error) {
	var value T
	answer, err := c.RunHedged(ctx, func(int) (func(context.Context, int) call.Result, func()) {
		var own T
		attempt := func(ctx context.Context, n int) call.Result {
			v, err := fn(c.Sending(ctx, n, nil))
			if err == nil {
				own = v
			}
			return call.Result{Class: classOf(err), Err: err}
		}
		return attempt, func() { value = own }
	})
	return answered(value, answer, err)
}

// answered returns the fallback's answer, if there is one, or else the call's own
// end.
func answered[T any](value T, answer any, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	if v, ok := answer.(T); ok { // else there is none
		return v, nil
	}
	return value, nil
}

// classOf classifies an error of which nothing is known but its type.
func classOf(err error) call.Class {
	switch {
	case err == nil:
		return call.OK
	case Refused(err):
		return call.Refused
	case errors.Is(err, context.DeadlineExceeded):
		return call.TimedOut
	case errors.Is(err, context.Canceled):
		return call.Canceled
	}
	return call.ServerFault
}

// bindPlain makes the table for [Do], at its first use.
func (k *Kit) bindPlain() (*Table, error) {
	b, err := k.Bind(plainNames)
	if err != nil {
		return nil, err
	}
	return b.Table(), nil
}

// find returns the policy of a key, or that of all without an entry.
func (t *Table) find(key string) *Method {
	if len(t.methods) > 0 { // a kit for one kind of calls has none
		if m := t.methods[key]; m != nil {
			return m
		}
	}
	return t.byDefault
}

// plainNames reads a table for [Do]: any name stands for itself.
var plainNames = wire.Protocol{
	Name:      "do",
	Parse:     func(name string) (string, error) { return name, nil },
	OneMethod: func(string) bool { return true },
	Declared:  func(string) call.Safety { return call.SafetyUnknown },
	Waits:     wire.Waits{Attempt: "to the function's return"},
}
