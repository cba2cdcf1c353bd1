package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// Run makes the call by the formula,
//
//	Fallback( Retry( CircuitBreaker( Timeout( Bulkhead( attempt ) ) ) ) )
//
// where an attempt ends when its function returns. It returns the fallback's
// answer, if one was given, or the call's error. With several upstreams what is
// repeated is a walk along them: see [Terms]. In a call that may be hedged
// [Call.RunHedged] lets attempts race in the place of one.
//
// attempt makes the n-th attempt, and says by [Call.End] how it has ended: one that
// does not has failed.
func (c *Call) Run(ctx context.Context, attempt func(ctx context.Context, n int)) (answer any, err error) {
	returned := false
	if c.followed() {
		defer c.unwoundUnless(&returned) // not what captures err, which all calls would pay for
	}
	var refusal call.Result
	for again := c.first(ctx); again; again = c.again(ctx, &refusal, nil) { // Retry(
		if c.once(ctx, attempt, &refusal) {
			returned = true
			if c.followed() {
				c.returnAt(ctx, nil, c.now)
			}
			return nil, nil
		}
	}
	answer, err = c.Fallback(ctx) // Fallback(
	returned = true
	c.Return(ctx, err)
	return answer, err
}

// End is for the function given to [Call.Run]: so the attempt under way has ended.
func (c *Call) End(res call.Result) { c.last = res }

// Succeed is End with an OK and nothing beside it.
func (c *Call) Succeed() { c.last.Class = call.OK } // all else was cleared

// once makes one attempt, whose end is in c.last, or is turned away. A panic or a
// Goexit in it is a failure and goes on. It reports whether the call has come to a
// plain good end.
func (c *Call) once(ctx context.Context, attempt func(context.Context, int), refusal *call.Result) bool {
	var a Attempt
	bounded := c.open(ctx, &a, false, refusal)
	c.room = nil // it is taken
	c.note(ctx, &a, bounded != nil)
	if bounded == nil {
		return false
	}
	c.within(ctx, bounded, &a, c.Attempt(), attempt, &c.last)
	return c.last.Class == call.OK && c.last.Err == nil
}

// within makes the n-th attempt, which was admitted and leaves its end in res.
func (c *Call) within(ctx, bounded context.Context, a *Attempt, n int, attempt func(context.Context, int), res *call.Result) {
	*res = call.Result{}         // and not with a class in it, which would be a copy
	res.Class = call.ServerFault // what a panic leaves standing
	var plain *Tally             // to count by once the layers have been told: their locked operations and this one are cheap together
	ended := false
	defer func() {
		if !ended {
			plain.countPlain()
			a.unwind(ctx, res)
		}
	}()
	began := c.Trying()
	attempt(bounded, n)
	if res.Class != call.OK || c.method.classify != nil {
		c.judge(ctx, a, res)
	}
	if a.tally != nil {
		plain = c.plainly(a, res)
	}
	c.Tried(ctx, n, began, res)
	now := mono.Now()
	if !c.hedged { // else others are at c
		c.now = now
	}
	a.end(ctx, res, now)
	plain.countPlain()
	ended = true
}

// judge gives an attempt's end its verdict.
func (c *Call) judge(ctx context.Context, a *Attempt, res *call.Result) {
	end := *res
	*res = call.Result{Class: call.ServerFault} // what a panic of the policy's leaves standing
	*res = c.Classify(ctx, a.Judge(ctx, end))
}

// open admits one attempt: CircuitBreaker( Timeout( Bulkhead( , in this order.
// With held the attempt outlives the function that makes it, as a response body
// or a stream does: its limit ends with [Attempt.Opened] then. If the attempt is
// refused the context is nil, the reason is in refusal and nothing is held. It
// changes nothing of c, so that attempts may run beside each other.
func (c *Call) open(ctx context.Context, a *Attempt, held bool, refusal *call.Result) (bounded context.Context) {
	if c.breaker != nil { // CircuitBreaker(
		var err error
		if c.walk != nil && c.walk.forced {
			err = c.force(a)
		} else {
			err = a.ticket.AllowAt(c.breaker, c.outerBreaker, c.now)
		}
		if err != nil {
			*refusal = refused(err)
			return nil
		}
	}

	now := c.now
	if a.probe = a.ticket.Probe(); a.probe {
		now = a.ticket.BeganAt(now) // it may have waited for a fleet's lock
	}
	bounded = ctx // Timeout(
	if held {
		bounded = c.hold(ctx, a, now)
	} else if c.limits != noLimits || a.probe {
		bounded = c.limit(ctx, a, now)
	}

	if c.bulkhead != nil { // Bulkhead(
		if !a.permit.Try(c.bulkhead, c.outerBulkhead) {
			if err := c.queue(ctx, bounded, a); err != nil {
				*refusal = turnedAway(ctx, err) // first: giving up ends the context of an attempt in a race
				a.giveUp(ctx)
				return nil
			}
		}
	}
	a.bucket, a.tally = c.bucket, c.tally
	if c.walk != nil {
		c.pick(ctx, a)
	}
	if c.Watched() {
		bounded = c.watch(bounded, a)
	}
	return bounded
}

// note remembers for Next what became of the attempt's admission, and tells of a
// repeat.
func (c *Call) note(ctx context.Context, a *Attempt, admitted bool) {
	c.admitted, c.probe = admitted, a.probe
	if c.attempts > 1 || c.walk != nil {
		c.noteRepeat(ctx, a)
	}
}

func (c *Call) noteRepeat(ctx context.Context, a *Attempt) {
	switch {
	case !c.admitted:
	case c.walk != nil:
		c.noteHop(ctx, a)
	default:
		c.tellRetry(ctx, a)
	}
}

// OpenHeld admits one attempt that outlives the function that makes it. If it is
// refused the context is nil, the reason is in refusal and nothing is held. It is for
// the adapter then to call a.Book and a.Release.
func (c *Call) OpenHeld(ctx context.Context, a *Attempt, refusal *call.Result) (held context.Context) {
	held = c.open(ctx, a, true, refusal)
	c.note(ctx, a, held != nil)
	return held
}
