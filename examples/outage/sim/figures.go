package sim

import (
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// Afterwards is how long after the outage ProbesAfter counts.
const Afterwards = 10 * time.Second

// Figures is what a run gave. What is called "in the outage" is from Setup.From to
// Setup.To.
type Figures struct {
	Attempts    int // sent to the dependency
	Downstream  int // of them, in the outage
	Probes      int // of those, a half-open breaker's
	ProbesAfter int // probes sent in the time Afterwards

	A         int // that arrived
	AInOutage int // of them, in the outage
	AOK       int
	AFailed   int
	AFastFail int // that the client ended without an attempt, or without a further one
	ARejected int // that found no thread

	BArrived int // in the outage
	BServed  int // of them

	ThreadsMost int // in use at once
	Transitions []Transition
}

// Transition is a change of a breaker's state.
type Transition struct {
	At       time.Duration
	From, To breaker.State
	Reason   breaker.Reason
}

// End is how an A ended.
type End uint8

// The ends.
const (
	OK End = iota
	Failed
	FastFail
	Rejected
)

// Trace is the course of a run, in steps of Every.
type Trace struct {
	Every time.Duration
	Steps []Step

	inUse int
	since time.Duration
}

// Step is what happened in one step.
type Step struct {
	Threads           float64 // in use, the mean over time
	Sent, Probes      int     // attempts
	BArrived, BServed int
	Ends              [4]int // of A, by End
}

// step returns the step of a moment; a nil trace has none.
func (t *Trace) step(at time.Duration) *Step {
	i := int(at / t.Every)
	for len(t.Steps) <= i {
		t.Steps = append(t.Steps, Step{})
	}
	return &t.Steps[i]
}

func (t *Trace) threads(at time.Duration, change int) {
	if t == nil {
		return
	}
	for t.since < at {
		until := min(at, t.since/t.Every*t.Every+t.Every)
		t.step(t.since).Threads += float64(t.inUse) * float64(until-t.since) / float64(t.Every)
		t.since = until
	}
	t.inUse += change
}

func (t *Trace) b(at time.Duration, served bool) {
	if t == nil {
		return
	}
	s := t.step(at)
	s.BArrived++
	if served {
		s.BServed++
	}
}

func (t *Trace) sent(at time.Duration, probe bool) {
	if t == nil {
		return
	}
	s := t.step(at)
	s.Sent++
	if probe {
		s.Probes++
	}
}

func (r *run) tellEnd(e End) {
	if r.trace != nil {
		r.trace.step(r.clock.now).Ends[e]++
	}
}
