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

// ended is how many attempts of the fault have ended at a time after its beginning, of
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
