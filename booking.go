package holdfast

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/timeout"
)

// Book tells the breaker, and whoever else watches, how the attempt ended. Only
// the first call counts.
func (a *Attempt) Book(ctx context.Context, res call.Result) { a.book(ctx, &res) }

func (a *Attempt) book(ctx context.Context, res *call.Result) {
	if a.booked.CompareAndSwap(false, true) {
		a.bookAlone(ctx, res, mono.Now())
	}
}

// EndAt books the attempt and gives back what it holds, for the one who has it alone and
// has read the clock. Should a hook panic, Unwind does what is left.
func (a *Attempt) EndAt(ctx context.Context, res *call.Result, now mono.Instant) {
	a.end(ctx, res, now)
}

// Unwind ends an attempt of which the same holds, and that a panic or a Goexit has
// ended, or the panic of a hook that was told of its end.
func (a *Attempt) Unwind(ctx context.Context, res call.Result) { a.unwind(ctx, &res) }

// end books the attempt and gives back what it holds, for the one who has it alone.
// Should a hook panic, unwind does what is left.
func (a *Attempt) end(ctx context.Context, res *call.Result, now mono.Instant) {
	if a.seat == nil && a.tally == nil {
		a.ending = true
		a.settle(ctx, res, now)
	} else {
		a.bookAlone(ctx, res, now)
	}
	a.permit.ReleaseAlone()
	if a.own != nil || a.held != nil || a.seat != nil {
		a.releaseRest()
	}
}

// unwind ends an attempt that a panic or a Goexit has ended, or the panic of a hook
// that was told of its end.
func (a *Attempt) unwind(ctx context.Context, res *call.Result) {
	defer a.Release()
	if !a.ending {
		a.bookAlone(ctx, res, mono.Now())
	}
}

// bookAlone is Book where nobody else can come first.
func (a *Attempt) bookAlone(ctx context.Context, res *call.Result, now mono.Instant) {
	a.ending = true
	if a.seat != nil && a.seat.told != nil {
		a.bookTold(ctx, res, now)
		return
	}
	if a.tally != nil {
		a.tally.attempts[slot(res.Class)].Add()
	}
	a.settle(ctx, res, now)
}

// bookTold is bookAlone for an attempt that a hook is told of.
func (a *Attempt) bookTold(ctx context.Context, res *call.Result, now mono.Instant) {
	defer a.seat.told.ended(*res) // also if a breaker's hook panics
	if a.seat.told.failed {
		a.settle(ctx, &call.Result{Class: call.Refused}, now) // it never came to be sent
		return
	}
	if a.tally != nil {
		a.tally.attempts[slot(res.Class)].Add()
	}
	a.settle(ctx, res, now)
}

// settle books the attempt's end with the layers.
func (a *Attempt) settle(ctx context.Context, res *call.Result, now mono.Instant) {
	verdict := verdictOf(res.Class)
	if res.Class == call.TimedOut && a.probe && (callerDone(ctx) || a.hasty && errors.Is(res.Err, timeout.ErrExceeded)) {
		// A probe is judged by the dependency's answer or by its own limit, not
		// by how long its caller cares to wait.
		verdict = breaker.Neutral
	}
	if verdict == breaker.Success && a.bucket != nil {
		a.bucket.EarnAt(now)
	}
	if verdict != breaker.Neutral {
		a.permit.Book(verdict != breaker.Success) // for its limit, throttled is too much load
	}
	end := breaker.Outcome{Verdict: verdict, RetryAfter: res.RetryAfter}
	if a.hop != nil {
		a.hop.settle(&a.ticket, end, now)
		return
	}
	a.ticket.DoneAt(end, now)
}

// giveUp ends an attempt that was admitted and is not made.
func (a *Attempt) giveUp(ctx context.Context) {
	defer a.Release() // a hook may panic in settle
	if !a.booked.CompareAndSwap(false, true) {
		return
	}
	res := call.Result{Class: call.Refused}
	if a.seat != nil && a.seat.told != nil {
		defer a.seat.told.ended(res)
	}
	a.settle(ctx, &res, mono.Now())
}

// giveUpUnless gives an attempt up unsent if a hook that was to be told of it has
// panicked. The token of a repeat that is not made goes back; a hedge has none yet.
func (c *Call) giveUpUnless(ctx context.Context, a *Attempt, told *bool) {
	if *told {
		return
	}
	hedge := a.seat != nil && a.seat.hedge
	if c.attempts > 1 && !hedge && (c.walk == nil || !c.walk.real) {
		c.bucket.ReturnAt(mono.Now())
	}
	a.giveUp(ctx)
}

// verdictOf maps the class of a result to what it means for the breaker.
func verdictOf(class call.Class) breaker.Verdict {
	if int(class) < len(verdicts) {
		return verdicts[class]
	}
	return breaker.Neutral
}

var verdicts = [classes]breaker.Verdict{
	call.OK: breaker.Success, call.ClientFault: breaker.Success,
	call.ServerFault: breaker.Failure, call.Unavailable: breaker.Failure, call.TimedOut: breaker.Failure,
	call.Throttled: breaker.Throttled,
	0:              breaker.Neutral, call.Canceled: breaker.Neutral, call.Refused: breaker.Neutral, call.Permanent: breaker.Neutral,
}
