package answers

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Stamp is when an answer was asked for: from where its age counts, and which
// removals of copies came after it.
type Stamp struct {
	at    mono.Instant
	drops uint64 // removals so far
}

// Stamp returns the stamp of an answer that is asked for now.
func (c *Cache) Stamp() Stamp { return Stamp{mono.Now(), c.drops.count.Load()} }

// Age returns how long ago that was.
func (s Stamp) Age() time.Duration { return max(mono.Now().Sub(s.at), 0) }

// drops remembers when copies were removed, so that an answer under way at that moment
// does not bring one back. Keys share a fixed number of places: one that shares a place
// with a removed one may miss a copy, and never keeps one that it should not. The zero
// value remembers none, and needs no room.
type drops struct {
	count atomic.Uint64
	last  atomic.Pointer[[dropPlaces]atomic.Uint64] // by place, the number of the last removal
}

// dropPlaces is how many places there are: of answers that are under way while a copy
// is removed, one in so many is not stored for a key that it has nothing to do with.
const dropPlaces = 1024

func dropPlace(k Key) int { return int(binary.BigEndian.Uint16(k[:]) % dropPlaces) }

// note remembers that the copy under k is being removed.
func (d *drops) note(k Key) {
	last := d.last.Load()
	if last == nil {
		d.last.CompareAndSwap(nil, new([dropPlaces]atomic.Uint64))
		last = d.last.Load()
	}
	place := &last[dropPlace(k)]
	for n := d.count.Add(1); ; {
		before := place.Load()
		if before >= n || place.CompareAndSwap(before, n) {
			return
		}
	}
}

// since reports whether the copy under k was removed after an answer was asked for.
func (d *drops) since(k Key, asked Stamp) bool {
	last := d.last.Load()
	return last != nil && last[dropPlace(k)].Load() > asked.drops
}
