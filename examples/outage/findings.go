package main

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// findings says in plain words what a policy does in a scenario: first by
// arithmetic, then by what the runs gave.
func findings(p holdfast.Policy, oneAttempt string, s scenario, bare, own *result) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	f := foresee(p, s)
	f.sayThreads(say)
	f.sayBreaker(say)

	say("In %d runs, medians: %.3f of B served during the fault, %.3f with the time limit alone; %.0f calls to the dependency, %.0f with the time limit alone; %.0f of the %d threads in use at the most.",
		own.seeds, value(own.bServed), value(bare.bServed), own.downstream.Median, bare.downstream.Median, own.threads.Median, s.Threads)
	sayOpening(say, s, own, f.breaker != nil)
	if own.attempts != nil && own.attempts.Median > 1.05 {
		say("Retries make %.2f attempts of a call during the fault.", own.attempts.Median)
	}
	if oneAttempt != "" {
		say("A call gets one attempt: %s.", oneAttempt)
	}
	if !p.Retry.IsOff() && p.Retry.Hedge.Sends() {
		say("Hedges are not played: the policy's would add load.")
	}
	if p.Fallback != nil && !p.Fallback.IsOff() {
		say("Fallbacks are not played: a failed or refused A may have had an answer.")
	}
	if p.Classify != nil {
		say("Classify is not played.")
	}
	return out
}

func value(s *span) float64 {
	if s == nil {
		return 1 // no B: none was lost
	}
	return s.Median
}

// sayThreads tells what the fault takes of the caller.
func (f *foresight) sayThreads(say func(string, ...any)) {
	name := map[string]string{silent: "A silence", recovery: "A silence", flapping: "A silence", partial: "The silent part", slow: "Slowness", failing: "A failing part"}[f.s.Fault.Kind]
	if f.takes == 0 {
		say("Nothing in the policy bounds the wait for an answer: %s takes thread after thread for as long as it lasts, and all %d within %s.",
			lower(name), f.s.Threads, short(seconds(float64(f.s.Threads)/(f.s.Rate*f.touched))))
		return
	}
	need := f.threads()
	rate := fmt.Sprintf("%g calls a second", f.s.Rate)
	if f.touched < 1 {
		rate = fmt.Sprintf("%g of %g calls a second", f.s.Rate*f.touched, f.s.Rate)
	}
	each := short(f.takes)
	if f.fails && f.s.Fault.Kind != failing {
		each = f.limited + " = " + each
	}
	wait := each
	switch {
	case f.attempts > 1:
		wait = fmt.Sprintf("%s (up to %d attempts of %s)", short(f.holds), f.attempts, each)
	case each != short(f.takes):
		wait = fmt.Sprintf("%s (%s)", short(f.takes), f.limited)
	}
	text := fmt.Sprintf("%s takes %s threads: %s x %s.", name, count(need), rate, wait)
	switch {
	case f.inside > 0 && f.inside < f.s.Threads:
		text += fmt.Sprintf(" The bulkhead lets at most %d wait, of the caller's %d.", f.inside, f.s.Threads)
	case need >= float64(f.s.Threads):
		text += fmt.Sprintf(" The caller has %d: all are taken %s after it begins, unless the breaker opens before.",
			f.s.Threads, short(seconds(float64(f.s.Threads)/(f.s.Rate*f.touched))))
		if f.inside > 0 {
			text += fmt.Sprintf(" The bulkhead's limit of %d is not below that, and does not help.", f.inside)
		}
	default:
		text += fmt.Sprintf(" The caller has %d.", f.s.Threads)
	}
	say("%s", text)
}

// sayBreaker tells whether and when the breaker can know.
func (f *foresight) sayBreaker(say func(string, ...any)) {
	if f.breaker == nil {
		say("There is no breaker.")
		return
	}
	ways := f.ways()
	first := -1
	for i, w := range ways {
		if w.after != never && (first < 0 || w.after < ways[first].after) {
			first = i
		}
	}
	if first < 0 {
		for _, w := range ways {
			by := ""
			if len(ways) > 1 {
				by = " by " + w.rule
			}
			say("The breaker is not expected to open%s: %s.", by, w.never)
		}
		return
	}
	best := ways[first]
	say("The breaker can know it after about %s, by %s; until then the calls go out.", short(best.after.Round(10*time.Millisecond)), best.rule)
	for i, w := range ways {
		switch {
		case i == first:
		case w.after == never:
			say("By %s it is not expected to: %s.", w.rule, w.never)
		default:
			say("By %s it could know after about %s.", w.rule, short(w.after.Round(10*time.Millisecond)))
		}
	}
}

// sayOpening tells what the breaker did.
func sayOpening(say func(string, ...any), s scenario, own *result, breaker bool) {
	if own.firstOpen == nil {
		if breaker {
			say("The breaker opened in none of the runs.")
		}
		return
	}
	fault := s.Fault
	if own.firstOpen.Median < fault.From.Seconds() {
		say("The breaker opened before the fault, at %.2f s: it cannot tell good times from bad.", own.firstOpen.Median)
		return
	}
	text := fmt.Sprintf("The breaker opened %s after the fault began (%s to %s)", relative(own.firstOpen.Median, fault.From),
		relative(own.firstOpen.Min, fault.From), relative(own.firstOpen.Max, fault.From))
	if own.opened < own.seeds {
		text += fmt.Sprintf(", in %d of the %d runs", own.opened, own.seeds)
	}
	switch {
	case own.lastClose == nil:
		text += ", and was not closed again in any run"
	case own.lastClose.Median < fault.To.Seconds():
		text += fmt.Sprintf(", and was closed for the last time at %.2f s, before the fault was over", own.lastClose.Median)
	default:
		text += fmt.Sprintf(", and was closed again %s after its end (%s to %s)", relative(own.lastClose.Median, fault.To),
			relative(own.lastClose.Min, fault.To), relative(own.lastClose.Max, fault.To))
	}
	say("%s.", text)
}

// relative writes a moment as it lies after another.
func relative(at float64, since time.Duration) string {
	return fmt.Sprintf("%.2f s", at-since.Seconds())
}

// count writes a number of threads.
func count(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.2g", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func lower(s string) string { return string(s[0]|0x20) + s[1:] }
