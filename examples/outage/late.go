package main

import (
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/examples/outage/sim"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// lateSuccess is what becomes of a breaker that opens while three slow calls are in
// flight, which then are answered well.
type lateSuccess struct {
	opened time.Duration
	closed time.Duration // 0 if it did not before a probe was let in
	probed time.Duration // when the first probe was, 0 if it was closed before
}

// admission is a call that was let in; its function tells the end.
type admission func(ok bool, now time.Duration)

// lateSuccesses plays it: three calls begin at 10 s and are answered at 12 s; ten
// others fail at once, 15 ms apart, and the breaker opens at 10.15 s.
func lateSuccesses(allow func(now time.Duration) admission, state func(now time.Duration) breaker.State) (l lateSuccess) {
	const (
		slow  = 3
		takes = 2 * time.Second
		gap   = 15 * time.Millisecond
		look  = 10 * time.Millisecond
	)
	begin := from
	var late []admission
	for range slow {
		late = append(late, allow(begin))
	}
	for i := range 10 {
		at := begin + time.Duration(i+1)*gap
		allow(at)(false, at)
		if state(at) == breaker.Open {
			l.opened = at
			break
		}
	}
	for at := l.opened; at < l.opened+10*time.Second; at += look {
		if at >= begin+takes && late != nil {
			for _, end := range late {
				end(true, begin+takes)
			}
			late = nil
		}
		switch state(at) {
		case breaker.Closed:
			l.closed = at
			return l
		case breaker.HalfOpen:
			l.probed = at
			return l
		}
	}
	return l
}

// kitsLateSuccess plays it with the kit's breaker.
func kitsLateSuccess() lateSuccess {
	instant := func(at time.Duration) mono.Instant { return mono.Instant{}.Add(at) }
	b, err := breaker.NewAt("dependency", *articleBreaker(patient), instant(0), func() float64 { return 0 })
	if err != nil {
		panic(err) // it is the article's
	}
	allow := func(now time.Duration) admission {
		ticket, err := b.AllowAt(instant(now))
		if err != nil {
			return func(bool, time.Duration) {}
		}
		return func(ok bool, now time.Duration) {
			verdict := breaker.Failure
			if ok {
				verdict = breaker.Success
			}
			ticket.DoneAt(breaker.Outcome{Verdict: verdict}, instant(now))
		}
	}
	return lateSuccesses(allow, func(now time.Duration) breaker.State { return b.StateAt(instant(now)) })
}

// naive is the rule to compare with: it books a result by the state that it finds at
// the result's end, and does not ask in which the call was admitted. Three
// successes in a row close it.
type naive struct {
	failures, successes int
	openUntil           time.Duration // 0 is closed
}

func (n *naive) state(now time.Duration) breaker.State {
	switch {
	case n.openUntil == 0:
		return breaker.Closed
	case now < n.openUntil:
		return breaker.Open
	}
	return breaker.HalfOpen
}

func (n *naive) allow(time.Duration) admission {
	return func(ok bool, now time.Duration) {
		if !ok {
			n.failures, n.successes = n.failures+1, 0
			if n.failures == 10 {
				n.openUntil = now + 5*time.Second
			}
			return
		}
		if n.successes++; n.successes == 3 {
			*n = naive{}
		}
	}
}

// result is the late success as a row of the table.
func (l lateSuccess) result(name string) result {
	figures := sim.Figures{
		Attempts: 13, Downstream: 13, A: 13, AInOutage: 13, AOK: 3, AFailed: 10,
		Transitions: []sim.Transition{{At: l.opened, From: breaker.Closed, To: breaker.Open}},
	}
	if l.closed > 0 {
		figures.Transitions = append(figures.Transitions, sim.Transition{At: l.closed, From: breaker.Open, To: breaker.Closed})
	}
	return result{row{name: name, seeds: 1}, measure([]sim.Figures{figures}, to-from)}
}

func naiveLateSuccess() lateSuccess {
	n := &naive{}
	return lateSuccesses(n.allow, n.state)
}
