package main

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/examples/outage/sim"
	"github.com/holdfast-go/holdfast/internal/check"
)

// Scenario is what happens to a user's policy, as a file says. Zero fields are as in
// the article's outage.
type scenario struct {
	Method string      // whose policy is meant
	Safety call.Safety // of it; unknown is what the policy or the wire says

	Rate       float64       // its calls a second
	OtherRate  float64       // requests a second of the same caller that do not call it
	OtherTakes time.Duration // each of those
	Threads    int           // of the caller
	Latency    time.Duration // of the dependency in good times
	Lasts      time.Duration // of the arrivals

	Fault fault
}

// fault is what is wrong with the dependency, and when.
type fault struct {
	Kind     string
	From, To time.Duration

	Latency  time.Duration // slow: of an answer; errors: to the error
	Share    float64       // errors, partial: of the attempts
	Period   time.Duration // flapping: of one turn, silent and well again
	Capacity float64       // recovery: attempts a second that it can do, from To on
	For      time.Duration // recovery: how long that is so
}

// The kinds of faults.
const (
	silent   = "silent"   // no answer
	slow     = "slow"     // answers late
	failing  = "errors"   // a share of the attempts fails
	flapping = "flapping" // silent for half of each period
	partial  = "partial"  // a share of the attempts gets no answer
	recovery = "recovery" // silent, and then not up to the load at first
)

var kinds = []string{silent, slow, failing, flapping, partial, recovery}

// loadScenario reads a scenario's file. The error names the file and every bad
// field.
func loadScenario(path string) (scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return scenario{}, err
	}
	s, faults := parseScenario(text)
	if err := faults.Err(path); err != nil {
		return scenario{}, err
	}
	return s, nil
}

func parseScenario(text []byte) (s scenario, faults check.Faults) {
	s = scenario{
		Rate: rate, OtherRate: rate, OtherTakes: bTakes, Threads: threads, Latency: latency, Lasts: lasts,
		Fault: fault{From: from, To: to},
	}
	f := fieldsOf(text, &faults)
	if f.values == nil {
		return s, faults
	}
	f.text("method", &s.Method)
	f.missing("method", "the name of the method whose policy is meant")
	var safety string
	if f.text("safety", &safety, "unsafe", "idempotent", "read_only") {
		s.Safety = map[string]call.Safety{"unsafe": call.Unsafe, "idempotent": call.Idempotent, "read_only": call.ReadOnly}[safety]
	}
	f.number("rate", &s.Rate, 0, 10000)
	f.number("other_rate", &s.OtherRate, 0, 10000)
	f.duration("other_takes", &s.OtherTakes, false)
	f.whole("threads", &s.Threads, 1, 100000)
	f.duration("latency", &s.Latency, false)
	f.duration("lasts", &s.Lasts, false)
	s.Fault.read(f.within("fault"))
	f.missing("fault", "what is wrong, and when")
	f.rest("is no field of a scenario")
	if len(faults) == 0 && s.Lasts < s.Fault.To {
		faults.Add("lasts", s.Lasts, "must not end before the fault, whose to is %v", s.Fault.To)
	}
	if most := s.Lasts.Seconds() * (s.Rate + s.OtherRate); len(faults) == 0 && most > 200000 {
		faults.Add("lasts", s.Lasts, "with %g requests a second these are %.0f; at most 200000 are played", s.Rate+s.OtherRate, most)
	}
	return s, faults
}

func (t *fault) read(f *fields) {
	if f.values == nil {
		return
	}
	f.missing("kind", "one of "+strings.Join(kinds, ", "))
	known := f.text("kind", &t.Kind, kinds...)
	f.duration("from", &t.From, true)
	f.duration("to", &t.To, false)
	if t.To <= t.From {
		f.faults.Add(f.path+"to", t.To, "must be after from = %v", t.From)
	}
	needs := func(name, want string, got bool) {
		if !got {
			f.missing(name, want)
		}
	}
	switch t.Kind {
	case slow:
		needs("latency", "how long an answer takes", f.duration("latency", &t.Latency, false))
	case failing:
		t.Latency = 5 * time.Millisecond
		f.duration("latency", &t.Latency, false)
		needs("share", "of the attempts that fail", f.number("share", &t.Share, 0, 1))
	case flapping:
		needs("period", "of one turn, half of it silent", f.duration("period", &t.Period, false))
	case partial:
		needs("share", "of the attempts that get no answer", f.number("share", &t.Share, 0, 1))
	case recovery:
		needs("capacity", "attempts a second that it can do at first", f.number("capacity", &t.Capacity, 0, 10000))
		needs("for", "how long its capacity stays reduced", f.duration("for", &t.For, false))
	}
	if known {
		f.rest("is no field of a fault of the kind " + t.Kind)
	}
}

// setup is the scenario for the simulation.
func (s scenario) setup() sim.Setup {
	return sim.Setup{
		Threads: s.Threads, A: s.Rate, B: s.OtherRate, BTakes: s.OtherTakes, Lasts: s.Lasts,
		From: s.Fault.From, To: s.Fault.To, Dependency: s.dependency,
	}
}

func (s scenario) dependency(chance sim.Chance) sim.Dependency {
	t := s.Fault
	well := sim.Silent{Latency: s.Latency} // silent at no time
	quiet := sim.Silent{Latency: s.Latency, From: t.From, To: t.To}
	switch t.Kind {
	case slow:
		return sim.Slow{Latency: s.Latency, Slow: t.Latency, From: t.From, To: t.To}
	case failing:
		bad := sim.Failing{Latency: s.Latency, Error: t.Latency, From: t.From, To: t.To}
		return sim.Partly{Good: well, Bad: bad, Share: t.Share, Chance: chance}
	case flapping:
		return sim.Flapping{Good: well, Bad: quiet, Period: t.Period, From: t.From, To: t.To}
	case partial:
		return sim.Partly{Good: well, Bad: quiet, Share: t.Share, Chance: chance}
	case recovery:
		return &sim.Limited{Dependency: quiet, PerSecond: t.Capacity, Since: t.To, Until: t.To + t.For}
	default:
		return quiet
	}
}

// String says in a line what is wrong.
func (t fault) String() string {
	what := map[string]string{
		silent:   "answers nothing",
		slow:     fmt.Sprintf("takes %s to answer", short(t.Latency)),
		failing:  fmt.Sprintf("fails %g %% of the attempts, after %s", 100*t.Share, short(t.Latency)),
		flapping: fmt.Sprintf("answers nothing in the first half of every %s", short(t.Period)),
		partial:  fmt.Sprintf("answers nothing to %g %% of the attempts", 100*t.Share),
		recovery: fmt.Sprintf("answers nothing, and for %s after that can do %g attempts a second", short(t.For), t.Capacity),
	}[t.Kind]
	return fmt.Sprintf("from %s to %s it %s", short(t.From), short(t.To), what)
}

// sorted ranges over a map by its keys in order.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
