package holdfast

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// Lane is for the kit's own adapters: one of the attempts that run beside each other,
// with all that it does not share with the others. They make lanes for [Call.Race].
type Lane interface {
	// Held returns what the attempt is to hold.
	Held() *Attempt

	// Run makes the attempt and books its end, unless its answer outlives it.
	// It may run on a goroutine of its own, and returns soon once ctx is done.
	Run(ctx context.Context) call.Result

	// End says, once no lane runs any more, whether the attempt's end is that of
	// the race. One that has not won gives up whatever it still holds.
	End(won bool)
}

// race is one round of attempts beside each other. All of it but Lane.Run
// happens on the caller's goroutine.
type race struct {
	call   *Call
	caller context.Context
	held   bool
	lanes  func(n int) Lane

	racers  []*racer // the attempt that is hedged, and its hedges
	running int
	ended   chan *racer
	won     *racer
	settled bool // every lane was told its end
}

// racer is an attempt in a race.
type racer struct {
	lane Lane
	n    int // of the attempt in its call
	seat *seat
	ctx  context.Context // what the attempt is made with
	sent mono.Instant

	// Set on the racer's goroutine, read once it has ended.
	res      call.Result
	returned bool // else it was unwound
	panicked any

	ended bool // the race knows of it
}

// seat is what an attempt knows of those around it: the race that it is in, and
// who watches it. It must not refer to the lane: an attempt may be kept by the
// collector's watch over its answer.
type seat struct {
	hedge bool
	quit  context.CancelFunc // nil if it is in no race
	lost  atomic.Bool        // another attempt has won
	told  *attemptTold       // nil if no hook watches
}

func (s *seat) lose() {
	s.lost.Store(true)
	s.quit()
}

// Race makes the next attempt, and hedges it as the policy says. It returns when
// all have returned: with the first acceptable result, or with that of the
// attempt that was hedged. lane makes the n-th attempt of the call. held says
// that attempts outlive Lane.Run.
//
// A panic or a Goexit in a lane ends the others and goes on from here.
func (c *Call) Race(ctx context.Context, held bool, lane func(n int) Lane) call.Result {
	hedge := c.retry.Hedge.WithDefaults()
	r := race{call: c, caller: ctx, held: held, lanes: lane}
	defer r.abort()

	first, refusal := r.admit(c.attempts, false)
	c.note(ctx, r.racers[0].lane.Held(), first != nil)
	if first == nil {
		r.end(nil)
		return refusal
	}
	delay := hedge.Delay
	if hedge.Percentile > 0 {
		delay = max(delay, c.latency.Percentile(first.sent))
	}
	if c.probe || !c.mayAdd() || delay >= c.left() {
		first.res, first.returned = first.lane.Run(first.ctx), true
		r.finished(first)
		return r.verdict()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	r.ended = make(chan *racer, 1+hedge.Extra)
	r.start(first)
	for left := hedge.Extra; r.running > 0; {
		select {
		case <-timer.C:
			if len(r.ended) > 0 {
				timer.Reset(1) // look at what came in the same instant first
				continue
			}
			if left--; r.hedge() && left > 0 {
				timer.Reset(delay)
			}
		case x := <-r.ended:
			r.running--
			if r.finished(x) {
				timer.Stop()
			}
		}
	}
	return r.verdict()
}

// admit takes the n-th attempt through the layers.
func (r *race) admit(n int, hedge bool) (*racer, call.Result) {
	lane := r.lanes(n) // may panic: nothing is held yet
	own, quit := context.WithCancel(r.caller)
	x := &racer{lane: lane, n: n, seat: &seat{hedge: hedge, quit: quit}}
	r.racers = append(r.racers, x)
	a := x.lane.Held()
	a.seat = x.seat
	var refusal call.Result
	bounded := r.call.open(own, a, r.held, &refusal)
	if bounded == nil {
		quit()
		return nil, refusal
	}
	x.ctx, x.sent = bounded, mono.Now()
	return x, refusal
}

// hedge sends another attempt, and reports whether it could.
func (r *race) hedge() bool {
	c := r.call
	c.now = mono.Now()
	// The layers are asked first, so that a hedge that cannot be sent costs no
	// token and leaves no trace in the breaker.
	if r.caller.Err() != nil || !c.mayAdd() || c.left() <= 0 || !c.closed() || c.bucket.TokensAt(c.now) < 1 {
		return false
	}
	before := len(r.racers)
	x, _ := r.admit(c.attempts+1, true)
	if x == nil {
		r.racers = r.racers[:before]
		return false
	}
	if a := x.lane.Held(); a.Probe() || !c.bucket.TakeAt(c.now) {
		r.racers = r.racers[:before]
		a.giveUp(r.caller)
		return false
	}
	c.attempts++
	c.raced = true
	r.start(x)
	c.tellHedge(r.caller, c.attempts)
	return true
}

// start lets an attempt run on a goroutine of its own.
func (r *race) start(x *racer) {
	r.running++
	ended := r.ended
	go func() {
		defer func() {
			if !x.returned {
				x.panicked = recover() // of a Goexit there is nothing to recover
			}
			ended <- x
		}()
		x.res = x.lane.Run(x.ctx)
		x.returned = true
	}()
}

// finished takes note of an attempt's end, and reports whether no hedge is to
// follow.
func (r *race) finished(x *racer) bool {
	x.ended = true
	switch {
	case r.won != nil:
		return true
	case x.returned && !r.acceptable(x):
		if r.running > 0 {
			x.lane.Held().ReleasePermit() // its answer may have to wait for long
		}
		return x.res.Class == call.Throttled || x.res.RetryAfter > 0 || x.res.NoRetry
	}
	r.won = x
	r.learn()
	for _, other := range r.racers {
		if !other.ended {
			other.seat.lose()
		}
	}
	return true
}

// acceptable reports whether an attempt's end is that of the race: it is one
// that a repeat would not mend. What became of a hedge on this side of the wire
// says nothing about the attempt that it was to help.
func (r *race) acceptable(x *racer) bool {
	switch x.res.Class {
	case call.Canceled, call.Refused, call.Permanent:
		return x == r.racers[0]
	}
	res := x.res
	if r.running > 0 {
		// Who forbids a repeat has not heard of the attempts under way: they may
		// still do better.
		res.NoRetry = false
	}
	return !retry.Repeatable(res, r.call.info.Safety, r.call.keyed)
}

// learn records how long the attempt that was hedged took, or would have taken
// at least if a hedge has won. Without the latter the slow ones would never be
// counted, and the percentile would sink.
func (r *race) learn() {
	first := r.racers[0]
	switch {
	case r.call.latency == nil || !r.won.returned:
		return
	case r.won == first && first.res.Class != call.OK:
		return
	case r.won != first && first.ended: // else its result is not yet ours to read
		return
	}
	now := mono.Now()
	r.call.latency.Add(now.Sub(first.sent), now)
}

// verdict ends the race once no attempt runs any more.
func (r *race) verdict() call.Result {
	won := r.won
	for _, x := range r.racers {
		switch {
		case x.returned:
		case x.panicked != nil:
			panic(x.panicked)
		default:
			runtime.Goexit()
		}
	}
	if won == nil && r.call.raced && r.caller.Err() != nil {
		r.end(nil)
		return callerEnd(r.caller)
	}
	if won == nil {
		won = r.racers[0]
	}
	for _, x := range r.racers {
		r.call.sent = r.call.sent || x != won && !x.res.NotSent
	}
	r.end(won)
	if won.seat.hedge {
		r.call.tellHedgeWon(r.caller, won.n)
	}
	return won.res
}

// end tells every lane how it ended. One that panics does not keep the others
// from being told.
func (r *race) end(won *racer) {
	r.settled = true
	for _, x := range r.racers {
		defer x.lane.End(x == won)
	}
}

// abort ends a race that is being unwound.
func (r *race) abort() {
	if r.settled {
		return
	}
	for _, x := range r.racers {
		x.seat.lose()
	}
	for ; r.running > 0; r.running-- {
		<-r.ended
	}
	r.end(nil)
}
