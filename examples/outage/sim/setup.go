package sim

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Setup is what happens to the callers, whatever they do about it.
type Setup struct {
	// Callers is how many there are, each with its own threads and state.
	Callers int

	// Threads is what each has: a request has one from its arrival to its end, and
	// is rejected if none is free.
	Threads int

	// A and B are requests a second to each caller, each a Poisson process. A calls
	// the dependency, B does not.
	A, B float64

	// BTakes is how long a B has its thread.
	BTakes time.Duration

	// Lasts is how long requests arrive. Those under way then come to their end.
	Lasts time.Duration

	// From and To bound the outage, for counting.
	From, To time.Duration

	// Dependency makes what A calls, new for each run.
	Dependency func(Chance) Dependency

	// Start is where the run begins on the clock of the kit's code. It matters to
	// nothing but the places of the stall rule's slots.
	Start mono.Instant

	// Before is called before each event with the moment of it, and After after it;
	// both may be nil. They keep time with a clock that others read, such as that of a
	// bubble of testing/synctest.
	Before func(mono.Instant)
	After  func()
}

// Chance returns random numbers, at least 0 and less than 1.
type Chance func() float64

// Dependency is what a caller calls.
type Dependency interface {
	// Answer tells what becomes of an attempt sent at that time.
	Answer(sent time.Duration) Answer
}

// Answer is what an attempt gets.
type Answer struct {
	Silent bool          // nothing, ever
	After  time.Duration // how long after it was sent
	Failed bool          // with an error of the server's
}
