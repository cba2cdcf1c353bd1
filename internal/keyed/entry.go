package keyed

import (
	"math"
	"sync/atomic"
)

// dead marks an entry that has been evicted; no tick is as small.
const dead = math.MinInt64

// entry is one key's place in a registry.
type entry[V any] struct {
	v     V
	used  atomic.Int64 // tick of the last use, or dead
	key   string
	index int // in Registry.list
}

func newEntry[V any](key string, v V, tick int64) *entry[V] {
	e := &entry[V]{key: key, v: v}
	e.used.Store(tick)
	return e
}

// touch notes a use and reports whether the entry is alive. It writes only when
// a new tick has begun, so that callers on several processors share the entry
// without sending its cache line to and fro.
func (e *entry[V]) touch(tick int64) bool {
	for {
		used := e.used.Load()
		if used >= tick {
			return true
		}
		if used == dead {
			return false
		}
		if e.used.CompareAndSwap(used, tick) {
			return true
		}
	}
}

// kill marks the entry evicted unless it was used since used was read. A For
// that found the entry before then fails in touch; one that touched it first
// makes kill fail.
func (e *entry[V]) kill(used int64) bool { return e.used.CompareAndSwap(used, dead) }
