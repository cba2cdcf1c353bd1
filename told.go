package holdfast

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// callTold is a call that a hook waits to see the end of: that it returns, and
// that each of its attempts ends.
type callTold struct {
	tell func(CallEnd)

	mu   sync.Mutex
	open int     // attempts that have not ended, and one until the call returns
	end  CallEnd // as it returned
	last int     // number of the latest attempt that has ended, 0 if none has
	back bool    // the call has returned
	own  bool    // with an end that is not its last attempt's
}

// attemptTold is an attempt that a hook is to be told of.
type attemptTold struct {
	call    *callTold                                                                // nil if nobody waits for its end
	hook    func(context.Context, call.Attempt) (context.Context, func(call.Result)) // may be nil
	attempt call.Attempt
	tell    func(call.Result) // of its end; may be nil
	failed  bool              // the hook was called and has not returned
}

// beginTold tells the hook of a call that begins.
func (c *Call) beginTold(ctx context.Context, hook func(context.Context, call.Info) (context.Context, func(CallEnd))) context.Context {
	within, tell := hook(ctx, c.info)
	if tell != nil {
		c.told = &callTold{tell: tell, open: 1}
	}
	if within == nil {
		return ctx
	}
	return within
}

type toldKey struct{}

// watch makes an attempt that was admitted one that a hook is told of, as soon as
// the adapter says that it is about to be sent.
func (c *Call) watch(bounded context.Context, a *Attempt) context.Context {
	if a.seat == nil {
		a.seat = &seat{}
	}
	told := &attemptTold{call: c.told, hook: c.hooks.Attempt}
	told.attempt = call.Attempt{Info: c.info, Wire: c.method.wire, Hedge: a.seat.hedge, Probe: a.Probe()}
	if c.told != nil {
		c.told.begin()
	}
	a.seat.told = told
	return context.WithValue(bounded, toldKey{}, told)
}

// Watched reports whether [Call.Sending] has somebody to tell.
func (c *Call) Watched() bool { return c.told != nil || c.hooks.Attempt != nil }

// Sending tells the hook of the n-th attempt, which is about to be sent with ctx, and
// returns the context to send it with. It need not be called if the call is not
// [Call.Watched]. header is the attempt's own, nil if it has none.
func (c *Call) Sending(ctx context.Context, n int, header call.Header) context.Context {
	told, _ := ctx.Value(toldKey{}).(*attemptTold)
	if told == nil {
		return ctx
	}
	told.attempt.Number, told.attempt.Header = n, header
	if told.hook == nil {
		return ctx
	}
	told.failed = true
	within, tell := told.hook(ctx, told.attempt)
	told.failed, told.tell = false, tell
	told.attempt.Header = nil
	if within == nil {
		return ctx
	}
	return within
}

// ended tells of the attempt's end.
func (t *attemptTold) ended(res call.Result) {
	if t.call != nil {
		defer t.call.attemptEnded(t.attempt.Number, res)
	}
	if t.tell != nil {
		t.tell(res)
	}
}

func (t *callTold) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open++
}

func (t *callTold) attemptEnded(n int, res call.Result) {
	t.mu.Lock()
	if n > t.last {
		t.last = n
		if !t.own {
			t.end.Result = res
		}
	}
	t.leave()
}

// leave is called with the lock held, and releases it.
func (t *callTold) leave() {
	t.open--
	over, end := t.open == 0, t.end
	t.mu.Unlock()
	if over {
		t.tell(end)
	}
}

// returned tells of the end of the call itself.
// own says that its end is not that of its last attempt.
func (t *callTold) returned(end CallEnd, own bool) {
	t.mu.Lock()
	if t.back { // a hook has panicked since
		t.mu.Unlock()
		return
	}
	t.back, t.own = true, own || end.Attempts == 0
	if !t.own && t.last == end.Attempts {
		end.Result = t.end.Result // the call knew of it only what it was at first
	}
	t.end = end
	t.leave()
}

// CallEnd returns how the call has ended if it returns err.
func (c *Call) CallEnd(err error) CallEnd {
	return CallEnd{
		Info: c.info, Result: c.last, Attempts: c.made(), Err: err, Stopped: c.stopped, Fallback: c.answered,
	}
}

// Return tells those who watch that the call returns to its caller, with err.
// [Call.Run] and [Call.RunHedged] do it themselves; other adapters call it once, or
// [Call.Unwound].
func (c *Call) Return(ctx context.Context, err error) {
	if c.followed() {
		c.returnAt(ctx, err, mono.First())
	}
}

// returnAt is Return for a caller who has read the clock; mono.First stands
// for one that has not.
func (c *Call) returnAt(ctx context.Context, err error, now mono.Instant) {
	r, counted := Returned{CallEnd: c.CallEnd(err)}, c.counted
	c.counted = true // also if a hook panics
	c.returnAs(ctx, &r, counted, now)
}

// followed reports whether anybody wants to know that the call returns.
func (c *Call) followed() bool {
	return c.tally != nil && !c.counted || c.told != nil || c.hooks.Returned != nil
}

// ReturnAs is Return for a call whose end is not to be read from c, because
// another goroutine may be at it.
func (c *Call) ReturnAs(ctx context.Context, end CallEnd) {
	c.returnAs(ctx, &Returned{CallEnd: end}, c.counted, mono.First())
}

func (c *Call) returnAs(ctx context.Context, r *Returned, counted bool, now mono.Instant) {
	if c.tally != nil && !counted {
		c.tally.calls[slot(r.Result.Class)].Add()
	}
	if c.tally != nil && r.Fallback {
		c.tally.fallbacks.Add()
	}
	if c.told != nil {
		defer c.told.returned(r.CallEnd, c.raced)
	}
	if h := c.hooks.Returned; h != nil {
		if now == mono.First() {
			now = mono.Now()
		}
		r.Took = now.Sub(c.began)
		h(ctx, *r)
	}
}

// close ends a call that returns err, or else is being unwound by a panic or a
// Goexit.
func (c *Call) close(ctx context.Context, err error, returned bool) {
	if returned {
		c.Return(ctx, err)
		return
	}
	c.Unwound()
}

func (c *Call) unwoundUnless(returned *bool) {
	if !*returned {
		c.Unwound()
	}
}

// Unwound tells those who watch that a panic or a Goexit, which goes on, ends the
// call.
func (c *Call) Unwound() {
	if c.tally != nil && !c.counted {
		c.tally.calls[call.ServerFault].Add()
	}
	if c.told != nil {
		end := c.CallEnd(nil)
		end.Result, end.Fallback = call.Result{Class: call.ServerFault}, false
		c.told.returned(end, true)
	}
}
