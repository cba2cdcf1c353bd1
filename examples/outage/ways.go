package main

import (
	"fmt"
	"math"
	"time"
)

// way is a rule by which the breaker could know.
type way struct {
	rule  string
	after time.Duration // from the beginning of the fault; never if it cannot
	never string        // why it cannot, within the fault
}

// ways returns what each rule of the breaker can know, and when.
func (f *foresight) ways() []way {
	c := f.breaker
	var ways []way
	failed := f.touched
	if !f.fails {
		failed = 0
	}
	slowShare := 0.0
	if c.SlowCall > 0 && f.takes > c.SlowCall {
		slowShare = f.touched
	}
	if c.FailureRate > 0 {
		ways = append(ways, f.byRate("FailureRate", c.FailureRate, failed, "fails"))
	}
	if c.SlowRate > 0 {
		ways = append(ways, f.byRate("SlowRate", c.SlowRate, slowShare, "is slower than SlowCall"))
	}
	if c.Failures > 0 {
		ways = append(ways, f.byCount(failed))
	}
	if c.Consecutive > 0 {
		ways = append(ways, f.byRow(failed))
	}
	if c.Stall.After > 0 {
		ways = append(ways, f.byStall())
	}
	return ways
}

// none is the text for a rule that the fault does not touch.
func (f *foresight) none(what string) string {
	return fmt.Sprintf("no attempt %s in this fault", what)
}

// byRate is a rate over the window.
func (f *foresight) byRate(rule string, rate, share float64, what string) way {
	c, w := f.breaker, way{rule: rule, after: never}
	if made := f.s.Rate * c.Window.Span.Seconds(); c.Window.Calls == 0 && math.Floor(made) < float64(c.MinCalls) {
		w.never = fmt.Sprintf("%d calls in %v are needed, this method makes %.0f", c.MinCalls, short(c.Window.Span), math.Floor(made))
		return w
	}
	switch {
	case share == 0:
		w.never = f.none(what)
		return w
	case f.takes == 0:
		w.never = "nothing ends an attempt that gets no answer"
		return w
	case share < rate && f.crowded():
		w.never = fmt.Sprintf("%g %% of the attempts %s, and the rule asks for %g %%; but they crowd the others out", 100*share, plural(what), 100*rate)
		return w
	case share < rate:
		w.never = fmt.Sprintf("%g %% of the attempts %s, and the rule asks for %g %%", 100*share, plural(what), 100*rate)
		if f.byChance(share, rate) {
			w.never += "; but the window is so small that chance may do it"
		}
		return w
	}
	w.after, w.never = f.search(share, func(bad, all float64) bool {
		return all >= float64(c.MinCalls) && bad >= rate*all*(1-1e-9)
	})
	return w
}

// crowded reports whether the attempts that the fault touches would take all there
// is to take, so that no others are made.
func (f *foresight) crowded() bool { return f.threads() >= float64(f.most()) }

// most is how many attempts can run at once.
func (f *foresight) most() int {
	if f.inside > 0 {
		return min(f.s.Threads, f.inside)
	}
	return f.s.Threads
}

// byChance reports whether a share of the window may by chance be as large as the
// rule asks: it is fewer than five standard deviations off.
func (f *foresight) byChance(share, rate float64) bool {
	n := float64(f.breaker.Window.Calls)
	if n == 0 {
		n = f.s.Rate * f.breaker.Window.Span.Seconds()
	}
	return (rate-share)*math.Sqrt(n) < 5*math.Sqrt(share*(1-share))
}

// byCount is a number of failures in the window.
func (f *foresight) byCount(share float64) way {
	w := way{rule: "Failures", after: never}
	if share == 0 {
		w.never = f.none("fails")
		return w
	}
	w.after, w.never = f.search(share, func(bad, _ float64) bool { return bad >= float64(f.breaker.Failures) })
	return w
}

// byRow is a number of failures in a row.
func (f *foresight) byRow(share float64) way {
	w := way{rule: "Consecutive", after: never}
	switch n := f.breaker.Consecutive; {
	case share == 0:
		w.never = f.none("fails")
	case share < 1:
		w.never = fmt.Sprintf("answers come in between: %d in a row are chance", n)
	default:
		w.after, w.never = f.search(share, func(bad, _ float64) bool { return bad >= float64(n) })
	}
	return w
}

// byStall is the stall rule.
func (f *foresight) byStall() way {
	c, w := f.breaker.Stall, way{rule: "Stall", after: never}
	most := f.most()
	waiting := f.s.Rate * (f.holds - c.After).Seconds()
	if f.takes == 0 { // without limit
		waiting = math.Inf(1)
	}
	switch {
	case f.s.Fault.Kind == failing:
		w.never = "the dependency answers, if with errors"
	case f.touched < 1 && f.crowded() && most >= c.Calls: // then nothing is answered any more
		w.after = seconds(float64(most)/(f.s.Rate*f.touched)) + c.After
	case f.touched < 1:
		w.never = "answers come in between"
	case f.takes > 0 && f.takes <= c.After:
		w.never = fmt.Sprintf("no attempt waits longer than %v", short(c.After))
	case most < c.Calls:
		w.never = fmt.Sprintf("%d attempts without an answer are needed, and no more than %d run at once", c.Calls, most)
	case waiting < float64(c.Calls):
		w.never = fmt.Sprintf("%d attempts without an answer for %v are needed, and at this rate there are %.0f", c.Calls, short(c.After), waiting)
	default:
		w.after = c.After + seconds(float64(c.Calls)/f.s.Rate)
	}
	return w
}

const never time.Duration = math.MaxInt64

// search finds when the window first holds enough. It holds what was good before
// the fault, as far as it reaches, then what ends in the fault: at the flow that
// threads and bulkhead allow, and not before the first attempt has ended.
func (f *foresight) search(share float64, enough func(bad, all float64) bool) (time.Duration, string) {
	const step = 10 * time.Millisecond
	c := f.breaker
	kept := c.Window.Span
	before := f.s.Fault.From.Seconds() * f.s.Rate // results there can be of the time before
	for at := f.takes; at <= f.turn+f.takes; at += step {
		bad, reach := f.ended(share, at), at
		if kept > 0 && at > kept {
			bad -= f.ended(share, at-kept)
			reach = kept
		}
		good := (1 - share) * min(f.s.Rate, f.flow()) * reach.Seconds()
		if n := float64(c.Window.Calls); n > 0 { // what came last stays
			bad = min(bad, n*share)
			good = min(good, n-bad)
			good += max(min(n-bad-good, before), 0)
		} else {
			good += min(f.s.Rate*max(kept-at, 0).Seconds(), before)
		}
		if enough(bad, bad+good) {
			return at, ""
		}
	}
	if kept > 0 && c.Window.Calls == 0 {
		return never, fmt.Sprintf("within the %v of it the window of %v does not hold enough of it", short(f.turn), short(kept))
	}
	return never, fmt.Sprintf("within the %v of it there are not enough of them", short(f.turn))
}
