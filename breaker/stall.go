package breaker

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// stallRing counts the attempts in flight by the slot of time in which they
// started, and so knows how many have been unanswered for how long without a
// list of them. Slots are numbered from the clock's origin; a place of the ring
// is shared by the slots with the same number modulo its size, and the attempts
// of a slot that had to make room are counted as older.
type stallRing struct {
	slots    [stallPlaces]atomic.Uint64 // low 24 bits: attempts unanswered; above: number of the slot
	older    atomic.Int64               // attempts unanswered of slots that had to make room
	answered atomic.Int64               // attempts answered but not ended
	alive    atomic.Int64               // number of the slot in which an attempt was last answered well
}

const (
	stallPlaces    = 16
	stallCountBits = 24
	stallCountMask = 1<<stallCountBits - 1
)

// stallGrid returns the length of a slot, 1<<shift ns, the least that lets
// stallPlaces of them span more than after; and the number of slots after which
// each attempt of a slot has been in flight for longer than after.
func stallGrid(after time.Duration) (shift uint, slots int64) {
	shift = uint(bits.Len64(uint64(after-1) / (stallPlaces - 2)))
	return shift, (int64(after)-1)>>shift + 2
}

func newStallRing() *stallRing {
	s := &stallRing{}
	s.alive.Store(-1 << 62)
	return s
}

// slotWord packs a slot's number, of which 40 bits are kept, and a count.
func slotWord(slot int64, n uint64) uint64 { return uint64(slot)<<stallCountBits | n }

// begin counts an attempt that starts in slot.
func (s *stallRing) begin(slot int64) {
	place := &s.slots[slot&(stallPlaces-1)]
	for {
		v := place.Load()
		// The signed distance of the slot's number from the one in place.
		ahead := int64(slotWord(slot, 0)-v&^stallCountMask) >> stallCountBits
		n := v & stallCountMask
		switch {
		case ahead > 0 || n == 0:
			if place.CompareAndSwap(v, slotWord(slot, 1)) {
				if n > 0 {
					s.older.Add(int64(n))
				}
				return
			}
		case ahead == 0 && n < stallCountMask:
			if place.CompareAndSwap(v, v+1) {
				return
			}
		default: // the place has moved on, or is full
			s.older.Add(1)
			return
		}
	}
}

// end takes off an attempt that started in slot.
func (s *stallRing) end(slot int64) {
	place := &s.slots[slot&(stallPlaces-1)]
	for {
		v := place.Load()
		if v&^stallCountMask != slotWord(slot, 0) || v&stallCountMask == 0 {
			s.older.Add(-1)
			return
		}
		if place.CompareAndSwap(v, v-1) {
			return
		}
	}
}

// well notes that an attempt was answered well in slot.
func (s *stallRing) well(slot int64) {
	if s.alive.Load() < slot {
		s.alive.Store(slot)
	}
}

// silent judges the rule at slot.
func (s *stallRing) silent(r *rules, slot int64) bool {
	if slot-s.alive.Load() < r.stallSlots {
		return false
	}
	overdue, waiting := s.waiting(r, slot)
	return overdue >= int64(r.cfg.Stall.Calls) && 2*overdue >= waiting+s.answered.Load()
}

// waiting returns how many attempts are overdue, and how many are unanswered at
// all.
func (s *stallRing) waiting(r *rules, slot int64) (overdue, all int64) {
	overdue = s.older.Load()
	all = overdue
	for i := range s.slots {
		v := s.slots[i].Load()
		n := int64(v & stallCountMask)
		if n == 0 {
			continue
		}
		all += n
		if int64(slotWord(slot, 0)-v&^stallCountMask)>>stallCountBits >= r.stallSlots {
			overdue += n
		}
	}
	return overdue, all
}

// slotAt returns the number of the slot that now lies in.
func (r *rules) slotAt(now mono.Instant) int64 { return now.Pack() >> r.stallShift }
