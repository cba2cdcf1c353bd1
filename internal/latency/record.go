// Package latency keeps how long attempts took in the last minute, for the
// percentile after which a hedge is sent.
package latency

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Samples is how many latencies a percentile needs to mean anything.
const Samples = 50

// Record keeps the latencies of one target's attempts over the last minute, and tells
// which of them a share stayed below. A nil *Record keeps nothing and knows nothing.
//
// It is a histogram whose steps grow with the latency, in six slots of ten
// seconds. Each counter carries the slot's turn beside its count, so that a slot
// begins its next turn without being cleared: recording takes no lock, allocates
// nothing and loses no sample.
type Record struct {
	origin mono.Instant
	slots  [slots][steps]atomic.Uint64 // turn << 32 | count

	// The last percentile that was worked out, for those who ask within a second.
	asked atomic.Int64  // nanoseconds from origin, plus 1; 0 before the first
	found atomic.Int64  // a time.Duration, 0 if there were too few samples
	share atomic.Uint64 // of a float64, the bits
}

const (
	slots = 6
	span  = 10 * time.Second

	// Each doubling of the latency has eight steps, from 2^17 ns, about 0.13 ms,
	// to 2^37 ns, about 137 s. What is shorter or longer is taken for that.
	stepBits     = 3
	lowestPower  = 17
	highestPower = 37
	steps        = (highestPower-lowestPower)<<stepBits + 1

	refreshAfter = time.Second
)

// New returns a record without latencies for the percentile of share, which is
// within (0, 1).
func New(share float64, now mono.Instant) *Record {
	l := &Record{origin: now}
	l.share.Store(math.Float64bits(share))
	return l
}

// Update asks for the percentile of another share from now on; what was recorded
// stays.
func (l *Record) Update(share float64) {
	if l == nil {
		return
	}
	l.share.Store(math.Float64bits(share))
	l.asked.Store(0) // so that the next to ask works it out anew
}

// stepOf returns the counter of a latency.
func stepOf(d time.Duration) int {
	if d < 1<<lowestPower {
		return 0
	}
	power := bits.Len64(uint64(d)) - 1
	if power >= highestPower {
		return steps - 1
	}
	return (power-lowestPower)<<stepBits | int(d>>(power-stepBits))&(1<<stepBits-1)
}

// above returns the upper end of a counter's latencies, which exceeds none of
// them by more than an eighth.
func above(step int) time.Duration {
	next := step + 1
	return time.Duration(1<<stepBits|next&(1<<stepBits-1)) << (lowestPower - stepBits + next>>stepBits)
}

// turnAt numbers the spans of time. The numbers wrap around after some centuries'
// worth of them; they are compared by their distance.
func (l *Record) turnAt(now mono.Instant) uint32 {
	d := now.Sub(l.origin)
	if d < 0 {
		d -= span - 1 // round down
	}
	return uint32(d / span)
}

func (l *Record) slot(turn uint32) *[steps]atomic.Uint64 {
	// The number of turns is no multiple of six, so after it has wrapped around
	// two turns may share a slot once: the older one's samples are lost then.
	return &l.slots[turn%slots]
}

// Add notes, at the moment now, an attempt that took d.
func (l *Record) Add(d time.Duration, now mono.Instant) {
	if l == nil || d < 0 {
		return
	}
	turn := l.turnAt(now)
	counter := &l.slot(turn)[stepOf(d)]
	for {
		old := counter.Load()
		next := old + 1
		switch age := int32(turn - uint32(old>>32)); {
		case old == 0 || age > 0:
			next = uint64(turn)<<32 | 1
		case age < 0 || uint32(old) == math.MaxUint32:
			return // somebody is a whole round ahead of this goroutine
		}
		if counter.CompareAndSwap(old, next) {
			return
		}
	}
}

// Percentile returns, at the moment now, the latency that the share of
// the last minute's attempts stayed below, at most an eighth too long. It is 0 if
// there are fewer than [Samples] of them. The answer may be a second old.
func (l *Record) Percentile(now mono.Instant) time.Duration {
	if l == nil {
		return 0
	}
	at := int64(now.Sub(l.origin))
	asked := l.asked.Load()
	if asked != 0 && at-(asked-1) < int64(refreshAfter) && at >= asked-1 || !l.asked.CompareAndSwap(asked, at+1) {
		return time.Duration(l.found.Load())
	}
	found := l.percentile(now)
	l.found.Store(int64(found))
	return found
}

// Idle reports whether nothing recorded counts any more at the moment now.
func (l *Record) Idle(now mono.Instant) bool {
	if l == nil {
		return true
	}
	turn := l.turnAt(now)
	for s := range l.slots {
		for i := range l.slots[s] {
			if v := l.slots[s][i].Load(); v != 0 && l.counts(v, turn) {
				return false
			}
		}
	}
	return true
}

// counts reports whether a counter is of the last minute.
func (l *Record) counts(v uint64, turn uint32) bool {
	age := int32(turn - uint32(v>>32))
	return age < slots && age > -slots
}

func (l *Record) percentile(now mono.Instant) time.Duration {
	var counts [steps]uint64
	total, turn := uint64(0), l.turnAt(now)
	for s := range l.slots {
		for i := range counts {
			if v := l.slots[s][i].Load(); l.counts(v, turn) {
				counts[i] += uint64(uint32(v))
				total += uint64(uint32(v))
			}
		}
	}
	if total < Samples {
		return 0
	}
	rank := uint64(math.Ceil(math.Float64frombits(l.share.Load()) * float64(total)))
	seen := uint64(0)
	for i, n := range counts {
		if seen += n; seen >= rank {
			return above(i)
		}
	}
	return above(steps - 1)
}
