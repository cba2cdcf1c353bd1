package sim

import (
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// request is one A, or one B, from its arrival to its end.
type request struct {
	caller *caller
	thread bulkhead.Pair
	*kitCall
}

// kitCall is one call of a kit: an A's that has a thread. The calls of nested kits
// are requests inside requests.
//
// The methods play run.go and repeat.go of the kit, with events in the place of
// waits.
type kitCall struct {
	kit    *kit
	outer  *request       // the attempt that it was made in; nil is none
	ticket breaker.Ticket // of the breaker around the call

	end      mono.Instant // of Total
	now      mono.Instant // of the last decision
	attempts int
	before   int
	delay    time.Duration
	admitted bool
	probe    bool
	last     call.Result
	stopped  error

	attempt attempt
}

// attempt is what an attempt holds.
type attempt struct {
	ticket breaker.Pair
	permit bulkhead.Pair
	turn   bulkhead.Turn
	bound  deadline.Bound
	until  time.Duration // when bound ends, if there is one
	hasty  bool
	leave  time.Duration // when it gives its turn up
	result call.Result
}

// begin begins the call.
func (q *request) begin() {
	k := q.kit
	k.begin()
	now := k.run.clock.instant()
	if k.around != nil {
		var err error
		if q.ticket, err = k.around.AllowAt(now); err != nil {
			q.last = refused(err)
			q.finish()
			return
		}
	}
	q.end, q.now = now.Add(k.limits.Total), now
	q.attempts = 1
	q.try()
}

// try makes an attempt: CircuitBreaker( Timeout( Bulkhead( , in this order.
func (q *request) try() {
	k, a := q.kit, &q.attempt
	*a = attempt{}
	if k.breaker != nil { // CircuitBreaker(
		if err := a.ticket.AllowAt(k.breaker, k.outerBreaker, q.now); err != nil {
			q.turnedAway(refused(err))
			return
		}
	}

	a.bound = q.bound() // Timeout(
	a.until = forever
	if a.bound.Left > 0 {
		a.until = k.run.clock.now + a.bound.Left
	}

	if k.bulkhead != nil && !a.permit.Try(k.bulkhead, k.outerBulkhead) { // Bulkhead(
		a.ticket.Queued()
		a.turn = bulkhead.NewTurn(k.bulkhead, k.outerBulkhead)
		if !q.poll() {
			k.queue = append(k.queue, q)
		}
		return
	}
	q.send()
}

// bound returns the nearest limit of an attempt that begins now.
func (q *request) bound() (b deadline.Bound) {
	l := &q.kit.limits
	if l.Total > 0 {
		b = deadline.Bound{Limit: "Total", Whole: l.Total, Left: max(q.end.Sub(q.now), 1)}
	}
	if !q.attempt.ticket.Probe() {
		return b.Nearer("Attempt", l.Attempt)
	}
	b = b.Nearer("ProbeTimeout", q.attempt.ticket.ProbeLimit())
	q.attempt.hasty = b.Limit == "Total" && q.attempts > 1
	return b
}

// send sends the attempt that was admitted.
func (q *request) send() {
	k, a := q.kit, &q.attempt
	q.admitted, q.probe = true, a.ticket.Probe()
	if k.inner != nil {
		inner := &request{caller: q.caller, kitCall: &kitCall{kit: k.inner, outer: q}}
		inner.begin()
		return
	}
	c := &k.run.clock
	answer := q.caller.send(q.probe)
	switch at := c.now + answer.After; {
	case !answer.Silent && at <= a.until:
		a.result = call.Result{Class: call.OK}
		if answer.Failed {
			a.result = call.Result{Class: call.ServerFault, Err: errServer}
		}
		c.at(at, (*request).answered, q)
	case a.until != forever:
		a.result = call.Result{Class: call.TimedOut, Err: a.bound.Error()}
		c.at(a.until, (*request).answered, q)
	default: // it holds its thread for ever
	}
}

// answered ends the attempt: it is booked, and gives back what it holds.
func (q *request) answered() { q.ended(q.attempt.result) }

func (q *request) ended(res call.Result) {
	a, now := &q.attempt, q.kit.run.clock.instant()
	verdict := verdictOf(res.Class)
	if res.Class == call.TimedOut && a.hasty && q.probe {
		verdict = breaker.Neutral
	}
	if verdict == breaker.Success && q.kit.bucket != nil {
		q.kit.bucket.EarnAt(now)
	}
	if verdict != breaker.Neutral {
		a.permit.Book(verdict != breaker.Success)
	}
	a.ticket.DoneAt(breaker.Outcome{Verdict: verdict, RetryAfter: res.RetryAfter}, now)
	a.permit.Release()
	q.kit.admitWaiting()
	q.next(res)
}

// turnedAway ends an attempt that was not admitted.
func (q *request) turnedAway(res call.Result) {
	q.admitted = false
	q.attempts--
	if q.attempts > 0 { // the token of a repeat that is not made
		q.kit.bucket.ReturnAt(q.kit.run.clock.instant())
		q.stopped = res.Err // the call ends with its last real result
	} else {
		q.last = res
	}
	q.finish()
}

// next decides what follows on the end of an attempt.
func (q *request) next(res call.Result) {
	k := q.kit
	q.last = res
	if k.retry == nil || res.Class == call.OK {
		q.finish()
		return
	}
	q.now = k.run.clock.instant()
	d := k.retry.NextAt(retry.Input{
		Attempt: q.attempts, Before: q.before, Result: res, Safety: k.safety, Probe: q.probe && !k.unaware, Nested: k.nested,
		Left: q.left(), Refusal: q.refusal(), Bucket: k.bucket, PrevDelay: q.delay, U: 1 - k.run.backoff(),
	}, q.now)
	if !d.Again {
		q.stopped = d.Reason
		q.finish()
		return
	}
	q.delay = d.Delay
	if d.Delay == 0 {
		q.again()
		return
	}
	k.run.clock.at(k.run.clock.now+d.Delay, (*request).again, q)
}

// again makes the next attempt, once its wait is over.
func (q *request) again() {
	q.now = q.kit.run.clock.instant()
	if err := q.refusal(); err != nil {
		q.stopped = err
	} else if q.left() <= 0 {
		q.stopped = retry.ErrNoTime
	}
	if q.stopped != nil {
		q.kit.bucket.ReturnAt(q.now)
		q.finish()
		return
	}
	q.attempts++
	q.try()
}

// refusal returns what the breaker would answer to the next attempt.
func (q *request) refusal() error {
	k := q.kit
	if k.breaker == nil {
		return nil
	}
	if err := k.breaker.RefusalAt(q.now); err != nil || k.outerBreaker == nil {
		return err
	}
	return k.outerBreaker.RefusalAt(q.now)
}

// left returns how long the call may go on.
func (q *request) left() time.Duration {
	if l := &q.kit.limits; l.Total > 0 {
		return q.end.Sub(q.now) - l.Floor
	}
	return retry.NoLimit
}

// finish ends the call.
func (q *request) finish() {
	if q.kit.around != nil {
		q.ticket.DoneAt(breaker.Outcome{Verdict: verdictOf(q.last.Class)}, q.kit.run.clock.instant())
	}
	if q.outer != nil {
		// An outer kit's function returns the error of the inner one.
		q.outer.ended(q.last)
		return
	}
	q.caller.done(q)
}
