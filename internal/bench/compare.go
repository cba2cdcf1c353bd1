package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// outcome is what a row has shown.
type outcome struct {
	Row        string   `json:"row"`
	Unit       string   `json:"unit"` // ns or B
	Passes     int      `json:"passes"`
	Kit        figure   `json:"kit"`
	Bare       *figure  `json:"bare,omitempty"`
	Yardstick  *figure  `json:"yardstick,omitempty"`
	Peers      []figure `json:"peers"`
	BestPeer   string   `json:"best_peer,omitempty"`
	ToBestPeer float64  `json:"kit_to_best_peer,omitempty"`
	ToBare     float64  `json:"kit_to_bare,omitempty"`
	Goal       string   `json:"goal,omitempty"`
	Allowed    float64  `json:"allowed,omitempty"`     // by the goal, on this machine in this run
	ToGoal     float64  `json:"kit_to_goal,omitempty"` // met at 1 and below
	Faults     []string `json:"missed,omitempty"`      // goals not met
	Why        string   `json:"why,omitempty"`         // what that goes to
	Note       string   `json:"note,omitempty"`
}

// figure is one contender's: medians of all passes.
type figure struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`

	passes []float64
}

// plan says how a row is run.
type plan struct {
	passes int
	each   time.Duration
}

// for network rows the passes are shorter and more.
func (p plan) forRow(r *row) plan {
	switch {
	case r.memory:
		return plan{passes: 1}
	case r.network:
		return plan{passes: max(1, p.passes*16/6), each: p.each}
	}
	return p
}

// run measures all contenders of a row, by turns.
func run(r *row, p plan) (*outcome, error) {
	p = p.forRow(r)
	figures := make([]figure, len(r.contenders))
	children := make([]*child, len(r.contenders))
	defer func() {
		for _, k := range children {
			if k != nil {
				k.stop()
			}
		}
	}()
	for i := range r.contenders {
		figures[i].Name = r.contenders[i].name
		k, err := start(r, &r.contenders[i], p.each)
		if err != nil {
			return nil, err
		}
		children[i] = k
		if r.memory {
			figures[i].Allocs, figures[i].Bytes = k.first.Allocs, k.first.Bytes
			figures[i].passes = []float64{k.first.Bytes}
		}
	}
	if !r.memory {
		for pass := range p.passes {
			for turn := range children {
				i := (pass + turn) % len(children) // nobody is always first
				s, err := children[i].ask(order{})
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", r.name, figures[i].Name, err)
				}
				figures[i].passes = append(figures[i].passes, s.Nanos)
			}
		}
		for i, k := range children {
			s, err := k.ask(order{Count: true})
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", r.name, figures[i].Name, err)
			}
			figures[i].Allocs, figures[i].Bytes = s.Allocs, s.Bytes
		}
	}
	return judge(r, figures), nil
}

// tolerance is what a figure may be over its goal: the registry's own growth does
// not come in equal steps.
var tolerance = map[bool]float64{true: 0.01}

// judge compares the figures. Ratios are medians of the passes' own ratios, for
// neighbours in time share their noise.
func judge(r *row, figures []figure) *outcome {
	o := &outcome{Row: r.name, Unit: "ns", Goal: r.goal.text, Note: r.note}
	if r.memory {
		o.Unit = "B"
	}
	for i := range figures {
		f := &figures[i]
		f.Median = median(f.passes)
		switch r.contenders[i].role {
		case kit:
			o.Kit = *f
		case bare:
			o.Bare = f
		case yardstick:
			o.Yardstick = f
		default:
			o.Peers = append(o.Peers, *f)
		}
	}
	o.Passes = len(o.Kit.passes)
	if len(o.Peers) > 0 {
		best := slices.MinFunc(o.Peers, func(a, b figure) int { return int(math.Copysign(1, a.Median-b.Median)) })
		o.BestPeer, o.ToBestPeer = best.Name, ratio(o.Kit, func(i int) float64 { return best.passes[i] })
	}
	if o.Bare != nil {
		o.ToBare = ratio(o.Kit, func(i int) float64 { return o.Bare.passes[i] })
	}
	if r.goal.set() {
		allowed := func(i int) float64 { return r.goal.within(o.Bare.at(i), o.Yardstick.at(i)) }
		o.ToGoal = ratio(o.Kit, allowed)
		o.Allowed = r.goal.within(o.Bare.median(), o.Yardstick.median())
		if o.ToGoal > 1+tolerance[r.memory] {
			o.Faults = append(o.Faults, fmt.Sprintf("%s by %.0f %%", o.Unit, (o.ToGoal-1)*100))
		}
	}
	o.atMost("allocations", o.Kit.Allocs, o.Bare.allocs(), r.goal.allocs)
	o.atMost("bytes", o.Kit.Bytes, o.Bare.bytes(), r.goal.bytes)
	if len(o.Faults) > 0 {
		o.Why = whys[r.name]
	}
	return o
}

// atMost holds what the kit allocates more than the bare call against a goal.
func (o *outcome) atMost(what string, of, bare float64, goal *float64) {
	const chance = 0.5 // a background allocation in some of the operations
	if goal != nil && of-bare > *goal+chance {
		o.Faults = append(o.Faults, fmt.Sprintf("%.0f %s more, %.0f at most", of-bare, what, *goal))
	}
}

func (f *figure) at(pass int) float64 {
	if f == nil {
		return 0
	}
	return f.passes[pass]
}

func (f *figure) median() float64 {
	if f == nil {
		return 0
	}
	return f.Median
}

func (f *figure) allocs() float64 {
	if f == nil {
		return 0
	}
	return f.Allocs
}

func (f *figure) bytes() float64 {
	if f == nil {
		return 0
	}
	return f.Bytes
}

func ratio(of figure, to func(pass int) float64) float64 {
	ratios := make([]float64, len(of.passes))
	for i, v := range of.passes {
		ratios[i] = v / to(i)
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 && n > 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
