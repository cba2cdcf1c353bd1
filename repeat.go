package holdfast

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Next reports whether to make an attempt now, the first or, after res, another.
// It waits as long as the policy asks. prepare, if not nil, is called when such a
// wait begins, to give back what the failed attempt still holds and to make
// ready what the next one needs; its error ends the call.
func (c *Call) Next(ctx context.Context, res *call.Result, prepare func(context.Context) error) bool {
	if c.attempts == 0 {
		return c.first(ctx)
	}
	if c.admitted {
		c.last = *res
	}
	return c.again(ctx, res, prepare)
}

// again is Next after an attempt, whose end is in c.last, or after its refusal.
func (c *Call) again(ctx context.Context, refusal *call.Result, prepare func(context.Context) error) bool {
	res := refusal
	if c.admitted {
		res = &c.last
	}
	if c.walk != nil {
		end, next := c.walkOn(ctx, *res, prepare)
		res = &end
		switch next {
		case toUpstream:
			c.sent = c.sent || !end.NotSent
			return true
		case callOver:
			c.tellRefused(ctx)
			return false
		}
	}
	if !c.admitted {
		if c.walk == nil || !c.walk.real { // else the round was made, if not to its end
			c.attempts--
			if c.attempts > 0 {
				c.bucket.ReturnAt(mono.Now()) // the token of a repeat that is not made
			}
		}
		if c.attempts > 0 && res.Class == call.Refused {
			c.stopped = res.Err // the call ends with its last real result
		} else {
			c.last = *res
		}
		c.tellRefused(ctx)
		return false
	}
	if c.walk != nil {
		c.last = *res
	}
	if c.raced || res.Class == call.OK {
		return false
	}
	if c.walk != nil {
		asked := c.asked(*res)
		res = &asked
	}
	d := c.decide(ctx, res)
	if !d.Again {
		c.stopped = d.Reason
		if c.stopped == nil && c.walk != nil {
			c.stopped = c.walk.refusal
		}
		c.tellRefused(ctx)
		return false
	}
	if !c.wait(ctx, d.Delay, prepare) {
		c.tellRefused(ctx)
		return false
	}
	if res.Exact {
		c.before = c.attempts
	}
	c.sent = c.sent || !res.NotSent
	c.attempts++
	if c.walk != nil {
		c.beginRound()
	}
	return true
}

// first is Next before the first attempt: it reports whether the call may make any.
func (c *Call) first(ctx context.Context) bool {
	if ctx.Err() == nil && c.left() > 0 {
		c.attempts = 1
		return true
	}
	if left := c.left() + c.limits.Floor; ctx.Err() != nil || left <= 0 { // the deadline has passed, if only just
		c.last = callerEnd(ctx)
		c.last.NotSent = true
	} else {
		c.last = refused(&timeout.FloorError{Left: left, Floor: c.limits.Floor})
	}
	c.tellRefused(ctx)
	return false
}

// decide asks the retry policy what follows on res.
func (c *Call) decide(ctx context.Context, res *call.Result) retry.Decision {
	if c.retry == nil {
		return retry.Decision{}
	}
	c.now = mono.Now()
	return c.retry.NextAt(retry.Input{
		Attempt: c.attempts, Before: c.before, Result: *res, Safety: c.info.Safety, Keyed: c.keyed, Probe: c.probe, Nested: c.nested,
		CallerDone: ctx.Err() != nil, Left: c.left(), Refusal: c.refusal(),
		Bucket: c.bucket, PrevDelay: c.delay, U: 1 - rand.Float64(),
	}, c.now)
}

// refusal returns what the breaker would answer to the next attempt, nil for
// yes. It takes nothing.
func (c *Call) refusal() error {
	if c.walk != nil {
		return c.refusalOfAll()
	}
	if c.breaker == nil {
		return nil
	}
	if err := c.breaker.RefusalAt(c.now); err != nil || c.outerBreaker == nil {
		return err
	}
	return c.outerBreaker.RefusalAt(c.now)
}

// closed reports whether the breaker is closed, so that an attempt now would be no
// probe. It takes nothing.
func (c *Call) closed() bool {
	for _, b := range [...]*breaker.Breaker{c.breaker, c.outerBreaker} {
		if b == nil {
			continue
		}
		if s := b.StateAt(c.now); s != breaker.Closed && s != breaker.Disabled || b.RefusalAt(c.now) != nil {
			return false
		}
	}
	return true
}

// wait lets the back-off pass and reports whether the next attempt may begin. If not,
// the token of the repeat that is not made goes back, also if prepare panics.
func (c *Call) wait(ctx context.Context, delay time.Duration, prepare func(context.Context) error) (again bool) {
	defer func() {
		if !again {
			c.bucket.ReturnAt(mono.Now())
		}
	}()
	var due <-chan time.Time // never, where nothing is waited for
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		due = timer.C
	}
	if prepare != nil {
		// Reading a failed response is part of the wait.
		if err := prepare(ctx); err != nil && ctx.Err() == nil {
			c.stopped = err
			return false
		}
	}
	if due != nil {
		select {
		case <-due:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		c.last = callerEnd(ctx)
		return false
	}
	c.delay, c.now = delay, mono.Now()
	if err := c.refusal(); err != nil {
		c.stopped = err
		return false
	}
	if c.left() <= 0 {
		c.stopped = retry.ErrNoTime
		return false
	}
	return true
}
