package holdfast

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// watchers are those who want to know what the calls of an edition do.
type watchers struct {
	hooks    atomic.Pointer[Hooks] // never nil: those of the config with those attached
	counting *counting             // the kit's
}

// tellRefused tells that the call has ended because the kit turned an attempt away, if
// that is so.
func (c *Call) tellRefused(ctx context.Context) {
	if c.stopped == nil && c.attempts > 0 {
		return // no attempt was due
	}
	r := Refusal{Info: c.info, Attempt: c.made() + 1, Err: c.stopped}
	switch {
	case c.stopped != nil:
		r.Cause = causeOf(c.stopped)
	case c.last.Class == call.Refused:
		r.Cause, r.Err = causeOf(c.last.Err), c.last.Err
	case c.last.Class == call.TimedOut:
		r.Cause, r.Err = CauseExpired, c.last.Err
	default:
		return // the caller is gone
	}
	if c.tally != nil && r.Attempt == 1 {
		c.tally.first[r.Cause].Add()
	} else if c.tally != nil {
		c.tally.repeats[r.Cause].Add()
	}
	if h := c.hooks.Refused; h != nil {
		h(ctx, r)
	}
}

// tellRetry tells of a repeat that was admitted. Should the hook panic, the attempt
// is given up unsent.
func (c *Call) tellRetry(ctx context.Context, a *Attempt) {
	if h := c.hooks.Retry; h != nil {
		told := false
		defer c.giveUpUnless(ctx, a, &told)
		h(ctx, Retry{Info: c.info, Attempt: c.Attempt(), After: c.last, Delay: c.delay})
		told = true
	}
	if c.tally != nil {
		c.tally.retries.Add()
	}
}

func (c *Call) tellHedge(ctx context.Context, n int) {
	if c.tally != nil {
		c.tally.hedges.Add()
	}
	if h := c.hooks.Hedged; h != nil {
		h(ctx, Hedge{c.info, n})
	}
}

func (c *Call) tellHedgeWon(ctx context.Context, n int) {
	if c.tally != nil {
		c.tally.wons.Add()
	}
	if h := c.hooks.HedgeWon; h != nil {
		h(ctx, Hedge{c.info, n})
	}
}

// queue waits for a permit. Should the hook panic, the attempt is given up.
func (c *Call) queue(ctx, bounded context.Context, a *Attempt) error {
	a.ticket.Queued()
	began := mono.Now()
	err := a.permit.Acquire(a.queue(bounded), c.bulkhead, c.outerBulkhead)
	now := mono.Now()
	if err == nil {
		a.ticket.BeginAt(now)
	}
	h := c.hooks.Queued
	if full, ok := errors.AsType[*bulkhead.FullError](err); h == nil || ok && full.Reason() == bulkhead.QueueFull {
		return err // nobody asks, or nothing was waited for
	}
	told := false
	defer c.giveUpUnless(ctx, a, &told)
	h(ctx, Queued{Info: c.info, Took: now.Sub(began), Err: err})
	told = true
	return err
}

// Trying returns when an attempt begins that [Call.Tried] tells of. It is for adapters
// whose attempts outlive the function that makes them. If nobody wants to know the clock
// is not read.
func (c *Call) Trying() (began mono.Instant) {
	if c.hooks.Tried != nil {
		began = mono.Now()
	}
	return began
}

// Tried tells of the end of the n-th attempt, or of its answer.
func (c *Call) Tried(ctx context.Context, n int, began mono.Instant, res *call.Result) {
	if c.hooks.Tried != nil {
		c.tellTried(ctx, n, began, res)
	}
}

func (c *Call) tellTried(ctx context.Context, n int, began mono.Instant, res *call.Result) {
	c.hooks.Tried(ctx, Tried{Info: c.info, Number: n, Result: *res, Took: mono.Now().Sub(began)})
}
