package main

import (
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/examples/outage/sim"
)

// span is the range of a figure over the seeds.
type span struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// spanOf returns the range of values, nil if there are none. The median of an even
// number is the mean of the two in the middle.
func spanOf(values []float64) *span {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	n := len(values)
	return &span{values[0], round((values[(n-1)/2] + values[n/2]) / 2), values[n-1]}
}

// holds reports whether a published figure lies in the range. It is rounded to a
// step, and so are the bounds here.
func (s *span) holds(value, step float64) bool {
	return s != nil && value >= s.Min-step/2 && value <= s.Max+step/2
}

// round cuts what no reader can use.
func round(x float64) float64 { return math.Round(x*10000) / 10000 }

// measured is what the seeds gave for a row. A span is nil where no seed had such
// a figure.
type measured struct {
	downstream, bServed                *span // bServed as a share of those that arrived
	bCount                             *span // the same as a number
	aOK, aFailed, aFastFail, aRejected *span
	firstOpen, lastClose, transitions  *span // s
	attempts, threads                  *span // attempts for each A that arrived in the outage; threads in use at once
	probes, probesAfter                *span // a second
	opened                             int   // of the runs, those in which a breaker opened
}

// measure makes ranges of runs with an outage of that length.
func measure(runs []sim.Figures, outage time.Duration) measured {
	of := func(figure func(sim.Figures) (float64, bool)) *span {
		var values []float64
		for _, f := range runs {
			if v, ok := figure(f); ok {
				values = append(values, round(v))
			}
		}
		return spanOf(values)
	}
	count := func(figure func(sim.Figures) int) *span {
		return of(func(f sim.Figures) (float64, bool) { return float64(figure(f)), true })
	}
	opened := 0
	for _, f := range runs {
		if len(f.Transitions) > 0 {
			opened++
		}
	}
	return measured{
		opened:     opened,
		downstream: count(func(f sim.Figures) int { return f.Downstream }),
		bServed: of(func(f sim.Figures) (float64, bool) {
			return float64(f.BServed) / float64(f.BArrived), f.BArrived > 0
		}),
		bCount:    count(func(f sim.Figures) int { return f.BServed }),
		aOK:       count(func(f sim.Figures) int { return f.AOK }),
		aFailed:   count(func(f sim.Figures) int { return f.AFailed }),
		aFastFail: count(func(f sim.Figures) int { return f.AFastFail }),
		aRejected: count(func(f sim.Figures) int { return f.ARejected }),
		firstOpen: of(func(f sim.Figures) (float64, bool) {
			i := slices.IndexFunc(f.Transitions, func(t sim.Transition) bool { return t.To == breaker.Open })
			if i < 0 {
				return 0, false
			}
			return f.Transitions[i].At.Seconds(), true
		}),
		lastClose: of(func(f sim.Figures) (float64, bool) {
			at, ok := time.Duration(0), false
			for _, t := range f.Transitions {
				if t.To == breaker.Closed {
					at, ok = t.At, true
				}
			}
			return at.Seconds(), ok
		}),
		transitions: count(func(f sim.Figures) int { return len(f.Transitions) }),
		attempts: of(func(f sim.Figures) (float64, bool) {
			return float64(f.Downstream) / float64(f.AInOutage), f.AInOutage > 0
		}),
		threads:     count(func(f sim.Figures) int { return f.ThreadsMost }),
		probes:      of(func(f sim.Figures) (float64, bool) { return float64(f.Probes) / outage.Seconds(), true }),
		probesAfter: of(func(f sim.Figures) (float64, bool) { return float64(f.ProbesAfter) / sim.Afterwards.Seconds(), true }),
	}
}

// inside reports whether every published figure lies in its range.
func (m measured) inside(p *published) bool {
	holds := m.downstream.holds(float64(p.downstream), 0) &&
		m.bCount.holds(float64(p.bServed), 0) &&
		m.bServed.holds(float64(p.bServed)/publishedB, 0) &&
		m.aOK.holds(float64(p.aOK), 0) &&
		m.aFailed.holds(float64(p.aFailed), 0) &&
		m.aFastFail.holds(float64(p.aFastFail), 0) &&
		m.aRejected.holds(float64(p.aRejected), 0) &&
		m.transitions.holds(float64(p.transitions), 0)
	if p.transitions == 0 {
		return holds && m.firstOpen == nil
	}
	const hundredth = 0.01 // the article's seconds have two places
	return holds && m.firstOpen.holds(p.firstOpen, hundredth) && m.lastClose.holds(p.lastClose, hundredth)
}
