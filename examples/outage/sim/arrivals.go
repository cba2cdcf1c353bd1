package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// arrivals is a Poisson process.
type arrivals struct {
	rate float64
	rand *rand.Rand
	last time.Duration
}

// next returns when the next request comes; false if that is not before the end.
func (p *arrivals) next(end time.Duration) (time.Duration, bool) {
	if p.rate <= 0 {
		return 0, false
	}
	p.last += time.Duration(p.rand.ExpFloat64() / p.rate * float64(time.Second))
	return p.last, p.last < end
}

// of returns the processes of a caller, A's and B's.
func of(seed uint64, s Setup, caller int) (a, b arrivals) {
	n := uint64(firstCaller + 2*caller)
	return arrivals{rate: s.A, rand: stream(seed, n)}, arrivals{rate: s.B, rand: stream(seed, n+1)}
}

// Arrival is a request that comes.
type Arrival struct {
	At  time.Duration
	IsA bool
}

// Arrivals returns the requests that come to the first caller of a run, in order.
func Arrivals(seed uint64, s Setup) []Arrival {
	var all []Arrival
	a, b := of(seed, s, 0)
	for i, p := range []*arrivals{&a, &b} {
		for at, ok := p.next(s.Lasts); ok; at, ok = p.next(s.Lasts) {
			all = append(all, Arrival{at, i == 0})
		}
	}
	slices.SortStableFunc(all, func(a, b Arrival) int { return int(a.At - b.At) })
	return all
}
