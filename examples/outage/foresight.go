package main

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/retry"
)

// foresight is what arithmetic alone says of a policy in a scenario: rates times
// waits, and what a window holds. Nothing of it is simulated.
type foresight struct {
	s       scenario
	limit   time.Duration // of an attempt; 0 is none
	limited string        // the field that sets it
	breaker *breaker.Config
	inside  int // attempts that the bulkhead lets run at once; 0 is no such limit

	// What an attempt in the fault is.
	touched float64       // the share of them that the fault touches
	takes   time.Duration // how long such a one lasts
	fails   bool          // and whether it ends as a failure
	quiet   bool          // nothing of an answer is seen until then
	turn    time.Duration // how long the fault lasts at a stretch

	// What a call is whose attempts the fault touches.
	attempts int           // that it makes
	holds    time.Duration // how long it has its thread; 0 is for ever
	budget   retry.Budget  // of what is beyond the first attempts
}

func foresee(p holdfast.Policy, s scenario) foresight {
	f := foresight{s: s, touched: 1, fails: true, quiet: true, turn: s.Fault.To - s.Fault.From}
	if t := p.Timeout; !t.IsOff() {
		f.limit, f.limited = t.Attempt, "Timeout.Attempt"
		if t.Total > 0 && (f.limit == 0 || t.Total < f.limit) {
			f.limit, f.limited = t.Total, "Timeout.Total"
		}
	}
	if b := p.Breaker; !b.IsOff() {
		c := b.WithDefaults()
		f.breaker = &c
	}
	if b := p.Bulkhead; !b.IsOff() {
		f.inside = b.Limit
	}
	f.takes = f.limit
	switch t := s.Fault; t.Kind {
	case slow:
		if f.limit == 0 || t.Latency <= f.limit {
			f.takes, f.fails = t.Latency, false
		}
	case failing:
		f.touched, f.takes = t.Share, t.Latency
		if f.limit > 0 && t.Latency > f.limit {
			f.takes = f.limit
		}
	case partial:
		f.touched = t.Share
	case flapping:
		f.turn = t.Period / 2
	}
	f.foreseeCall(p)
	return f
}

// foreseeCall finds how the attempts of a call add up.
func (f *foresight) foreseeCall(p holdfast.Policy) {
	f.attempts, f.holds = 1, f.takes
	if r := p.Retry; !r.IsOff() && p.Safety.Repeatable() && f.fails && f.takes > 0 {
		full := r.WithDefaults()
		f.attempts, f.budget = full.MaxAttempts, full.Budget
		var total time.Duration
		if !p.Timeout.IsOff() {
			total = p.Timeout.Total
		}
		if total > 0 {
			// The next begins only before the end; the waits between are small.
			f.attempts = min(f.attempts, int((total-1)/f.takes)+1)
		}
		f.attempts = max(min(f.attempts, 1000), 1)
		f.holds = time.Duration(f.attempts) * f.takes
		if total > 0 {
			f.holds = min(f.holds, total)
		}
	}
}

// threads is how many threads the fault would hold with nothing to stop it.
func (f *foresight) threads() float64 { return f.s.Rate * f.touched * f.holds.Seconds() }

// flow is how many attempts a second there is room for in the fault, before anything
// opens.
func (f *foresight) flow() float64 {
	mean := f.touched*f.takes.Seconds() + (1-f.touched)*f.s.Latency.Seconds()
	return float64(f.most()) / mean
}

// ended is how many attempts of the fault have ended so long after its beginning, of
// those that end that way: the first of each call, then the repeats, as far as the
// budget pays for them.
func (f *foresight) ended(share float64, after time.Duration) float64 {
	first := share * f.s.Rate * max(after-f.takes, 0).Seconds()
	repeats := 0.0
	for i := 1; i < f.attempts && after > time.Duration(i+1)*f.takes; i++ {
		repeats += math.Pow(share, float64(i+1)) * f.s.Rate * (after - time.Duration(i+1)*f.takes).Seconds()
	}
	if f.attempts > 1 && !f.budget.IsNone() {
		repeats = min(repeats, f.budget.Cap+f.budget.PerSecond*after.Seconds())
	}
	return min(first+repeats, share*f.room(max(after-f.takes, 0)))
}

// room is how many attempts can have been begun in that time: as many at once as
// there is room for, and as many again when those have ended.
func (f *foresight) room(span time.Duration) float64 {
	turn := float64(f.most()) / f.flow()
	turns, part := math.Modf(span.Seconds() / turn)
	return float64(f.most()) * (turns + min(1, part*turn*f.s.Rate*float64(f.attempts)/float64(f.most())))
}

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

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// short writes a duration in seconds, or in milliseconds below one.
func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.4g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.4g s", d.Seconds())
}

func plural(verb string) string {
	if verb == "fails" {
		return "fail"
	}
	return "are slower than SlowCall"
}
