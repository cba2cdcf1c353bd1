package main

import (
	"fmt"
	"strings"
)

// A row is one kind of work, done by several contenders in the same run.
type row struct {
	name       string
	goroutines int  // that do the work together; 0 is one
	network    bool // more and shorter passes: the noise is the network stack's
	memory     bool // bytes for each object are what is measured, not time
	contenders []contender
	goal       goal
	note       string // what does not compare, if anything
}

// role says what a contender is there for.
type role uint8

const (
	peer      role = iota // another library, or the same made by hand
	kit                   // holdfast
	bare                  // the work itself; what goals add to
	yardstick             // nothing but the primitives that the work cannot do without
)

// A contender does a row's work in its own way. setup is called once in a
// process of the contender's own; the work it returns may be called by several
// goroutines at once.
type contender struct {
	name       string
	role       role
	goroutines int // other than the row's, if not 0
	setup      func() work
}

// work does the work of a row n times. For a row of memory it makes n objects and
// returns what holds them; for others it returns nil.
type work func(n int) any

// again makes work of a function that has nothing to return.
func again(do func(n int)) work { return func(n int) any { do(n); return nil } }

// A goal is what the kit may cost, by the figures of the row's other contenders:
// times the bare figure, and plus on top. plus is in nanoseconds of the machine
// that the goals were written on, where the yardstick takes pace; on another
// machine, or a busy one, it is stretched as the yardstick is. In a row of memory
// plus is in bytes.
type goal struct {
	text  string
	times float64
	plus  float64
	pace  float64 // 0 only where plus is

	allocs *float64 // at most this many more than bare; nil is no goal
	bytes  *float64
}

func most(n float64) *float64 { return &n }

func (g goal) set() bool { return g.times > 0 || g.plus > 0 }

// within returns how much the kit may cost beside these figures.
func (g goal) within(bare, yardstick float64) float64 {
	stretch := 1.0
	if g.pace > 0 {
		stretch = yardstick / g.pace
	}
	return g.times*bare + g.plus*stretch
}

func (r *row) find(role role) (int, bool) {
	for i, c := range r.contenders {
		if c.role == role {
			return i, true
		}
	}
	return 0, false
}

// check returns what is wrong with the row's definition.
func (r *row) check() error {
	seen := map[string]bool{}
	for _, c := range r.contenders {
		if seen[c.name] || c.setup == nil {
			return fmt.Errorf("row %q: contender %q is there twice, or does nothing", r.name, c.name)
		}
		seen[c.name] = true
	}
	_, hasKit := r.find(kit)
	_, hasBare := r.find(bare)
	_, hasYardstick := r.find(yardstick)
	switch {
	case !hasKit || strings.ContainsAny(r.name, "\n\t"):
		return fmt.Errorf("row %q: no kit, or a bad name", r.name)
	case r.goal.times > 0 && !hasBare:
		return fmt.Errorf("row %q: a goal relative to a bare call that is not there", r.name)
	case r.goal.pace > 0 && !hasYardstick:
		return fmt.Errorf("row %q: a goal paced by a yardstick that is not there", r.name)
	case r.goal.plus > 0 && r.goal.pace == 0 && !r.memory:
		return fmt.Errorf("row %q: a goal in bare nanoseconds", r.name)
	}
	return nil
}
