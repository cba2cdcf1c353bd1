package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/call"
)

// Run makes the call by the formula,
//
//	Fallback( Retry( CircuitBreaker( Timeout( Bulkhead( attempt ) ) ) ) )
//
// where an attempt ends when its function returns. It returns the fallback's
// answer, if one was given, or the call's error. With several upstreams Retry( repeats
// rounds of Failover( : see [Terms]. In a call that may be hedged
// [Call.RunHedged] lets attempts race in the place of one.
func (c *Call) Run(ctx context.Context, attempt func(ctx context.Context, n int) call.Result) (answer any, err error) {
	if c.followed() {
		returned := false
		defer func() { c.close(ctx, err, returned) }()
		answer, err = c.run(ctx, attempt)
		returned = true
		return answer, err
	}
	return c.run(ctx, attempt)
}

func (c *Call) run(ctx context.Context, attempt func(ctx context.Context, n int) call.Result) (answer any, err error) {
	var res call.Result
	for c.next(ctx, &res, nil) { // Retry(
		c.once(ctx, attempt, &res)
	}
	return c.Fallback(ctx) // Fallback(
}

// once makes one attempt, whose end is in res. A panic or a Goexit in it is a
// failure and goes on.
func (c *Call) once(ctx context.Context, attempt func(context.Context, int) call.Result, res *call.Result) {
	var a Attempt
	bounded := c.open(ctx, &a, false, res)
	c.note(ctx, &a, bounded != nil)
	if bounded != nil {
		c.within(ctx, bounded, &a, c.Attempt(), attempt, res)
	}
}

// within makes the n-th attempt, which was admitted.
func (c *Call) within(ctx, bounded context.Context, a *Attempt, n int, attempt func(context.Context, int) call.Result, res *call.Result) {
	*res = call.Result{Class: call.ServerFault} // what a panic leaves standing
	defer a.Release()
	defer func() { a.bookAlone(ctx, res) }()
	trial := c.Try(n)
	end := attempt(bounded, n)
	if end.Class != call.OK || c.method.classify != nil {
		end = c.Classify(ctx, a.Judge(ctx, end))
	}
	set(res, &end) // only now: until here it stands for a panic
	c.countPlain(a, res)
	if trial.call != nil {
		trial.Ended(ctx, end)
	}
}

// set is *to = *from for a result that was returned just now: to read a word back
// before its bytes are written, as a copy of the whole does, stalls the processor.
func set(to, from *call.Result) {
	to.Class, to.Err, to.Code, to.RetryAfter = from.Class, from.Err, from.Code, from.RetryAfter
	to.Exact, to.NotSent, to.NoRetry, to.Retry = from.Exact, from.NotSent, from.NoRetry, from.Retry
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
	if a.ticket.Probe() {
		now = a.ticket.BeganAt(now) // it may have waited for a fleet's lock
	}
	bound := c.bound(a, now) // Timeout(
	a.bucket, a.tally = c.bucket, c.tally
	if held {
		bounded = c.hold(ctx, a, bound, now)
	} else {
		bounded, a.own = bound.Context(ctx, now, c.callersLeft(now))
		a.limit, a.whole, a.until = bound.Limit, bound.Whole, now.Add(bound.Left)
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
	c.admitted, c.probe = admitted, a.Probe()
	switch {
	case !admitted:
	case c.walk != nil:
		c.noteHop(ctx, a)
	case c.attempts > 1:
		c.tellRetry(ctx, a)
	}
}

// OpenHeld admits one attempt that outlives the function that makes it. If it is
// refused the context is nil and nothing is held. It is for the adapter then to
// call a.Book and a.Release.
func (c *Call) OpenHeld(ctx context.Context, a *Attempt) (held context.Context, refusal call.Result) {
	held = c.open(ctx, a, true, &refusal)
	c.note(ctx, a, held != nil)
	return held, refusal
}
