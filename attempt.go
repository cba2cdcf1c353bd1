package holdfast

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Attempt is for the kit's own adapters: what one admitted attempt holds, a breaker's
// ticket, a bulkhead's permit, a context. It ends in two steps, each of which happens
// once whoever comes first: [Attempt.Book] tells the breaker how it ended,
// [Attempt.Release] gives back permit and context. The zero Attempt holds nothing.
type Attempt struct {
	ticket breaker.Pair
	permit bulkhead.Pair
	probe  bool // of a half-open breaker

	// Where one function is the whole attempt, its limit is the context's
	// deadline. It is the kit's own if the caller's is not sooner.
	limit  string // which one
	whole  time.Duration
	until  mono.Instant
	own    *deadline.Own
	hasty  bool        // a probe for which the call has less time than a probe gets
	booked atomic.Bool // in any case; it stands here to save room
	ending bool        // it is being booked by the one who has it alone

	// Where the attempt outlives the function, its context has the limits: on the
	// first part and on each wait of the rest. Nil if there are none.
	held *deadline.Held

	bucket *retry.Bucket
	tally  *Tally // of its method; nil if nobody counts
	seat   *seat  // nil if the attempt is alone, and nobody watches
	hop    *hop   // at one of several upstreams, if that takes more than the rest
}

// Probe reports whether the attempt is a half-open breaker's probe.
func (a *Attempt) Probe() bool { return a.probe }

// Answered tells the breaker that the dependency has begun to answer.
func (a *Attempt) Answered() {
	a.ticket.Answered()
	if a.hop != nil {
		a.hop.answered()
	}
}

// AnsweredAt is Answered for a caller that has read the clock.
func (a *Attempt) AnsweredAt(now mono.Instant) {
	a.ticket.AnsweredAt(now)
	if a.hop != nil {
		a.hop.answered()
	}
}

// Unwatch takes the attempt out of the search for a silent dependency.
func (a *Attempt) Unwatch() { a.ticket.Unwatched() }

// limit returns the context of an attempt that begins now and is one function: with
// its limit as the deadline, unless the caller's is sooner.
func (c *Call) limit(ctx context.Context, a *Attempt, now mono.Instant) context.Context {
	bound := c.bound(a, now)
	bounded, own := bound.Context(ctx, now, c.callersLeft(now), c.room.ofOwn())
	if own != nil {
		a.own, a.limit, a.whole, a.until = own, bound.Limit, bound.Whole, now.Add(bound.Left)
	}
	return bounded
}

// hold returns the context of an attempt that outlives the function that makes
// it. Its deadline stays the caller's; its limits end it sooner if they pass.
//
// Where there are none, or the caller's deadline is sooner than all of them, there is
// nothing to end it for, and it may be the caller's own; not a stream's, which lives on
// until its context ends, nor one that is to wait for a first message, however long that
// may take, nor one that its adapter may have to cancel.
func (c *Call) hold(ctx context.Context, a *Attempt, now mono.Instant) context.Context {
	bound, first, idle, left := c.bound(a, now), c.firstMessage(now), c.limits.Idle, c.callersLeft(now)
	if !c.stream && !c.OnlyUnsent() && !bound.Sooner(left) && first.Left == 0 && (idle == 0 || left <= idle) {
		a.held = nil
		return ctx
	}
	if a.held == nil {
		a.held = new(deadline.Held)
	}
	a.held.Begin(ctx, now, bound, first)
	return a.held
}

// Opened ends the limit on opening: the headers are there, or the stream. It
// returns the error of a limit that has passed before: the attempt's context is
// cancelled then, whatever the wire has just returned.
func (a *Attempt) Opened() error { return expired(a.held.Opened()) }

// OpenedAt is Opened for a caller that has read the clock.
func (a *Attempt) OpenedAt(now mono.Instant) error { return expired(a.held.OpenedAt(now)) }

// Delivered ends the limit on the first message, as Opened does for opening.
func (a *Attempt) Delivered() error { return expired(a.held.Delivered()) }

// WatchIdle begins to limit each wait of the attempt's body or stream, from
// [Attempt.BeginWait] to [Attempt.EndWait]. known says that it is a body whose
// length is known.
func (c *Call) WatchIdle(a *Attempt, known bool) {
	if known || !c.limits.IdleKnownLength {
		a.held.WatchIdle(c.limits.Idle)
	}
}

// BeginWait begins a wait for the next piece of a body or stream.
func (a *Attempt) BeginWait() { a.held.BeginWait() }

// EndWait ends it. It returns the error of a limit that has passed before: the
// attempt's context is cancelled then, whatever the wire has just returned.
func (a *Attempt) EndWait() error { return expired(a.held.EndWait()) }

// expired keeps a nil *Error from becoming an error that is not nil.
func expired(err *timeout.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// Judge settles who ended an attempt that failed without an answer. The
// caller's own context is asked first, then the kit's limit; an error from the
// wire cannot tell.
func (a *Attempt) Judge(ctx context.Context, res call.Result) call.Result {
	if !res.Class.Valid() {
		res.Class = call.ServerFault
	}
	if res.Err == nil || !(res.Class.Failed() || res.Class == call.Canceled) {
		return res
	}
	limit := a.passed()
	if callerDone(ctx) {
		end := callerEnd(ctx)
		res.Class, res.Err = end.Class, end.Err
		return res
	}
	if a.seat != nil && a.seat.lost.Load() {
		res.Class = call.Canceled
		return res
	}
	if limit != nil {
		// The wire's text is kept, for it may say what the attempt was waiting
		// for; its identity is not, for it may be a cancelled context's.
		if !errors.Is(res.Err, context.Canceled) && !errors.Is(res.Err, timeout.ErrExceeded) {
			detailed := *limit // the watch's own may be in other hands already
			detailed.Detail = wireText(res.Err)
			limit = &detailed
		}
		res.Class, res.Err = call.TimedOut, limit
	}
	return res
}

// wireText returns the text of an error without the URL that a client may have
// put around it: the query may hold a secret.
func wireText(err error) string {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return err.Error()
}

// passed returns the error of the kit's limit that has ended the attempt, if one
// has, and ends the limits.
func (a *Attempt) passed() *timeout.Error {
	if a.own != nil && !mono.Now().Before(a.until) {
		return &timeout.Error{Limit: a.limit, After: a.whole}
	}
	return a.held.Passed()
}

// AwaitsFirst reports whether a limit on the first message runs.
func (a *Attempt) AwaitsFirst() bool { return a.held.AwaitsFirst() }

// Limits returns the context that the limits of an attempt are in that outlives the
// function that makes it; nil if that is the caller's own. To release it cancels the
// attempt, and leaves it its permit.
func (a *Attempt) Limits() *deadline.Held { return a.held }

// ReleasePermit gives back the permit alone, while the context lives on. It may
// be called again.
func (a *Attempt) ReleasePermit() { a.permit.Release() }

// Release gives back the permit and the context. It may be called again.
func (a *Attempt) Release() {
	a.permit.Release()
	a.releaseRest()
}

func (a *Attempt) releaseRest() {
	if a.own != nil {
		a.own.Release()
	}
	if a.held != nil {
		a.held.Release()
	}
	if a.seat != nil && a.seat.quit != nil {
		a.seat.quit()
	}
}

// queue returns the context with which the attempt asks for a permit.
func (a *Attempt) queue(bounded context.Context) context.Context {
	if a.seat != nil && a.seat.hedge {
		return impatient{bounded}
	}
	return bounded
}
