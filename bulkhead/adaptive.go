package bulkhead

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Adaptive makes the limit of a bulkhead follow what the dependency bears. The
// zero Adaptive is off: the limit is fixed.
//
// The limit shrinks when attempts fail or time out and grows while they succeed.
// Latency plays no part, on purpose: a limit that compares latencies has nothing
// to compare while a dependency is silent and keeps letting attempts in, whereas
// here each of them ends as a timeout and shrinks the limit.
//
// Growth is by a step and shrinking by a factor, since of all linear rules that
// is the one by which independent clients of one dependency converge to using it
// fully and in equal shares, from wherever they begin (Chiu and Jain, "Analysis
// of the Increase and Decrease Algorithms for Congestion Avoidance in Computer
// Networks", 1989). TCP does so (RFC 5681); the steps here are taken as there:
//
//   - A window is as many ends of attempts as the limit at the time, which is
//     what one round trip is to TCP. When a window has passed the limit grows by
//     Increase, up to Config.Limit.
//   - As soon as more than the share Tolerance of a window has failed the limit
//     is multiplied by Decrease, and a new window begins. (TCP shrinks by a
//     single loss. To go by a share is the idea of Ramakrishnan and Jain's binary
//     feedback, 1990: a dependency that always fails one call in a hundred would
//     otherwise hold any limit near 14.)
//   - What began before the last decrease counts for nothing. So attempts that
//     began together and fail together shrink the limit once, however many they
//     are, and the next decrease is due to attempts under the smaller limit.
//   - At Config.Limit a window begins with its first failure.
//
// A bulkhead learns how attempts ended from [Permit.Book].
type Adaptive struct {
	// Min is the smallest limit, in attempts, from 1 to Config.Limit. Zero switches
	// the adaptive limit off.
	Min int

	// Start is the limit to begin with, from Min to Config.Limit. Zero is
	// Config.Limit.
	Start int

	// Increase is by how many attempts the limit grows after a good window. Zero
	// is 1.
	Increase int

	// Decrease is what the limit is multiplied by after a bad one, in (0, 1). Zero
	// is 0.5.
	Decrease float64

	// Tolerance is the share of a window that may fail without a decrease, in
	// (0, 1). Zero is 0.1. With a share as small as 1e-9 every failure counts.
	Tolerance float64
}

// withDefaults fills in every zero field; limit is Config.Limit.
func (a Adaptive) withDefaults(limit int) Adaptive {
	if a.Start == 0 {
		a.Start = limit
	}
	if a.Increase == 0 {
		a.Increase = 1
	}
	if a.Decrease == 0 {
		a.Decrease = 0.5
	}
	if a.Tolerance == 0 {
		a.Tolerance = 0.1
	}
	return a
}

func (a Adaptive) check(limit int) check.Faults {
	var faults check.Faults
	if a == (Adaptive{}) {
		return nil
	}
	f := a.withDefaults(limit)
	switch {
	case a.Min == 0:
		faults.Add("Min", a.Min, "must be set, or the other fields have no effect")
	case a.Min < 0 || a.Min > limit:
		faults.Add("Min", a.Min, "must be in [1, Limit = %d]; 0 with no other field set is a fixed limit", limit)
	}
	if f.Start < a.Min || f.Start > limit {
		if a.Start != 0 { // else it is Min that is wrong
			faults.Add("Start", a.Start, "must be in [Min = %d, Limit = %d], or 0 for Limit", a.Min, limit)
		}
	}
	if a.Increase < 0 {
		faults.Add("Increase", a.Increase, "must be at least 1, or 0 for the default")
	}
	if !(f.Decrease > 0 && f.Decrease < 1) {
		faults.Add("Decrease", a.Decrease, "must be in (0, 1), or 0 for the default")
	}
	if !(f.Tolerance > 0 && f.Tolerance < 1) {
		faults.Add("Tolerance", a.Tolerance, "must be in (0, 1), or 0 for the default")
	}
	return faults
}

// aimd is the running state of an [Adaptive]. It is guarded by Bulkhead.mu.
type aimd struct {
	min, max, increase  int64
	decrease, tolerance float64

	ended, failed int64 // of the window

	// epochs numbers the spans between decreases, of all times that the limit
	// was adaptive, so that no permit of an earlier one counts.
	epochs uint32
}

// adapt puts an Adaptive in force and returns the limit to go on with; mu is
// held. What has been learned stays.
func (b *Bulkhead) adapt(c Adaptive, limit int64) int64 {
	if c.Min == 0 {
		b.epoch.Store(0)
		return limit
	}
	if b.aimd == nil {
		b.aimd = new(aimd)
	}
	a, before := b.aimd, b.limit.Load()
	c = c.withDefaults(int(limit))
	least, start := min(int64(c.Min), limit), min(int64(c.Start), limit)
	learned := b.epoch.Load() != 0
	switch {
	case learned && before < a.max:
		start = max(least, min(before, limit))
	case learned: // it goes along with the ceiling
		start = limit
	}
	a.min, a.max, a.increase = least, limit, min(int64(c.Increase), limit)
	a.decrease, a.tolerance = c.Decrease, c.Tolerance
	a.ended, a.failed = 0, 0
	if !learned {
		b.newEpoch()
	}
	b.calm.Store(start == limit)
	return start
}

// newEpoch makes the permits that are out count for nothing; mu is held.
func (b *Bulkhead) newEpoch() {
	b.aimd.epochs = max(b.aimd.epochs+1, 1) // zero stands for none
	b.epoch.Store(b.aimd.epochs)
}

// book notes the end of an attempt that was admitted in that epoch.
func (b *Bulkhead) book(epoch uint32, failed bool) {
	// At the ceiling and without a failure there is nothing to write, so that a
	// healthy dependency's attempts do not meet here.
	if !failed && b.calm.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a, limit := b.aimd, b.limit.Load()
	if epoch != b.epoch.Load() {
		return
	}
	a.ended++
	if failed {
		a.failed++
		b.calm.Store(false)
	}
	next := limit
	switch {
	case float64(a.failed) > a.tolerance*float64(limit):
		next = max(a.min, int64(a.decrease*float64(limit)))
	case a.ended >= limit:
		next = min(limit+a.increase, a.max)
	default:
		return
	}
	a.ended, a.failed = 0, 0
	if next < limit {
		b.newEpoch()
	}
	b.limit.Store(next)
	b.calm.Store(next == a.max)
	if next > limit {
		b.grant()
	}
}

// Book tells an adaptive bulkhead how the attempt ended: failed for whatever
// speaks of a dependency in trouble, timeouts above all, and not failed for an
// answer. An end that says nothing of the dependency, such as a caller that gave
// up, is not booked. Only the first call counts. It may come before or after
// Release. On a bulkhead with a fixed limit, and on a zero Permit, it does
// nothing.
func (p *Permit) Book(failed bool) {
	if p.adapts() {
		p.book(failed)
	}
}

// adapts reports whether the end of the attempt is to be booked.
func (p *Permit) adapts() bool { return atomic.LoadUint32(&p.epoch) != 0 }

func (p *Permit) book(failed bool) {
	if epoch := atomic.SwapUint32(&p.epoch, 0); epoch != 0 {
		p.b.book(epoch, failed)
	}
}

// Limit returns how many attempts may run at once: Config.Limit, or what an
// adaptive limit stands at.
func (b *Bulkhead) Limit() int { return int(b.limit.Load()) }
