package sim

import (
	"slices"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
)

// poll looks how far a waiting attempt has come in the bulkheads' queues. It
// reports true once that is decided, and the attempt has been sent or has ended.
func (q *request) poll() bool {
	a, c := &q.attempt, &q.kit.run.clock
	admitted, err := a.turn.PollAt(c.instant(), &a.permit)
	switch {
	case err != nil:
		q.giveUp(err)
		return true
	case admitted:
		a.ticket.BeginAt(c.instant())
		a.leave = 0
		q.send()
		return true
	}
	leave := a.until
	if until, ok := a.turn.UntilAt(); ok {
		leave = min(leave, until.Sub(c.start))
	}
	if leave != a.leave && leave != forever {
		a.leave = leave
		c.at(leave, (*request).waitedOut, q)
	}
	return false
}

// waitedOut ends the wait of an attempt for a permit.
func (q *request) waitedOut() {
	k := q.kit
	if q.attempt.leave != k.run.clock.now {
		return // it has been admitted, or waits for another bulkhead by now
	}
	k.queue = slices.DeleteFunc(k.queue, func(other *request) bool { return other == q })
	q.giveUp(q.attempt.turn.LeaveAt(k.run.clock.instant()))
	k.admitWaiting()
}

// giveUp ends an attempt that the breaker has admitted and a bulkhead has not.
func (q *request) giveUp(err error) {
	q.attempt.leave = 0
	q.attempt.ticket.DoneAt(breaker.Outcome{Verdict: breaker.Neutral}, q.kit.run.clock.instant())
	q.turnedAway(refused(err))
}

// admitWaiting sends the attempts whose turn has come.
func (k *kit) admitWaiting() {
	for i := 0; i < len(k.queue); {
		q := k.queue[i]
		if !q.poll() {
			i++
			continue
		}
		// What was sent may have ended at once, and have let in others.
		k.queue = slices.DeleteFunc(k.queue, func(other *request) bool { return other == q })
		i = 0
	}
}

// refused is the result of an attempt that the kit turned away.
func refused(err error) call.Result {
	return call.Result{Class: call.Refused, Err: err, NotSent: true}
}

// verdictOf maps the class of a result to what it means for the breaker.
func verdictOf(class call.Class) breaker.Verdict {
	switch class {
	case call.OK, call.ClientFault:
		return breaker.Success
	case call.ServerFault, call.Unavailable, call.TimedOut:
		return breaker.Failure
	case call.Throttled:
		return breaker.Throttled
	}
	return breaker.Neutral
}
