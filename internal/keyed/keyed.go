// Package keyed holds one running value for each key, such as a breaker for
// each target, within a bound on their number.
package keyed

import (
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// DefaultMax is how many keys a registry holds if nothing else is said.
const DefaultMax = 10_000

// Options configures a [Registry].
type Options[V any] struct {
	// Max is the largest number of keys with a value of their own. Zero is
	// [DefaultMax].
	Max int

	// New makes the value of a key. It runs once for each stay of a key in the
	// registry, under the registry's lock: it must not call the registry.
	New func(key string) V

	// Idle reports whether a value may be dropped now because nothing is lost
	// with it. It runs under the registry's lock. Nil means always.
	Idle func(v V) bool

	// Evicted, if set, takes leave of a value that was dropped. It runs under
	// the registry's lock, so that whoever reads [Registry.Evictions] before
	// and after and sees no change has seen each value exactly once, in
	// [Registry.All] or in what Evicted gathered.
	Evicted func(key string, v V)

	// OverflowKey is handed to New for the value that keys without one of their
	// own share. Empty is "overflow".
	OverflowKey string
}

// Registry is a bounded map from keys to values that are made on first use.
//
// There is one value for a key under any race. At the bound a new key takes
// the place of the least recently used value that is idle; if there is none,
// new keys share one overflow value, which is not evicted.
//
// Uses are told apart to a tick of about a second, which is also how exact the
// order of eviction is. A value is safe from eviction for at least one tick
// after For returned it: a caller has that long to make it busy (to take a
// ticket, say). Later the value may be replaced behind the caller's back, and
// what the caller still does to it is lost, so ask again for each attempt.
type Registry[V any] struct {
	opt   Options[V]
	epoch mono.Instant
	byKey sync.Map // string -> *entry[V]

	overflow  atomic.Pointer[entry[V]]
	fullUntil atomic.Int64 // before this tick a new key overflows without a search

	mu        sync.Mutex
	list      []*entry[V] // what byKey holds, in no order
	victims   []victim[V] // idle when last searched, the least recently used at the end
	more      bool        // the last search found more victims than it kept
	searched  int64       // tick of the last search
	evictions uint64
}

// New returns an empty registry.
func New[V any](opt Options[V]) *Registry[V] {
	if opt.Max <= 0 {
		opt.Max = DefaultMax
	}
	if opt.OverflowKey == "" {
		opt.OverflowKey = "overflow"
	}
	r := &Registry[V]{opt: opt, epoch: mono.Now()}
	r.fullUntil.Store(math.MinInt64)
	r.searched = math.MinInt64
	return r
}

// For returns the value of key at the moment now, and makes it if need be.
func (r *Registry[V]) For(key string, now mono.Instant) V {
	tick := r.tick(now)
	if e, ok := r.byKey.Load(key); ok {
		if e := e.(*entry[V]); e.touch(tick) {
			return e.v
		}
	}
	return r.insert(key, tick)
}

// Peek returns the value of key if there is one. It is no use of it. A value
// that is not there is made, if ever, after Peek has returned.
func (r *Registry[V]) Peek(key string) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.byKey.Load(key)
	if !ok {
		return v, false
	}
	return e.(*entry[V]).v, true
}

// All ranges over the keys and values held when it is called, in no order, and
// over the overflow value if there is one.
func (r *Registry[V]) All() iter.Seq2[string, V] {
	r.mu.Lock()
	list := slices.Clone(r.list)
	r.mu.Unlock()
	if e := r.overflow.Load(); e != nil {
		list = append(list, e)
	}
	return func(yield func(string, V) bool) {
		for _, e := range list {
			if !yield(e.key, e.v) {
				return
			}
		}
	}
}

// Adopt takes over those values of another registry that keep names, as far as
// there is room; both have them from then on. It is for a registry that takes the
// other's place: one that is evicted by either is to be dealt with by the values.
func (r *Registry[V]) Adopt(from *Registry[V], keep func(key string, v V) bool) {
	from.mu.Lock()
	list := slices.Clone(from.list)
	from.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range list {
		if _, taken := r.byKey.Load(e.key); taken || len(r.list) >= r.opt.Max || !keep(e.key, e.v) {
			continue
		}
		r.add(newEntry(e.key, e.v, r.tick(mono.Now())))
	}
}

// add holds a new entry.
func (r *Registry[V]) add(e *entry[V]) {
	e.index = len(r.list)
	r.list = append(r.list, e)
	r.byKey.Store(e.key, e)
}

// Len returns the number of keys that have a value of their own.
func (r *Registry[V]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// Evictions returns how many values were dropped so far.
func (r *Registry[V]) Evictions() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evictions
}

// insert makes the value of a key that a look-up did not find alive.
func (r *Registry[V]) insert(key string, tick int64) V {
	if key == r.opt.OverflowKey {
		return r.shared()
	}
	if tick < r.fullUntil.Load() {
		if e := r.overflow.Load(); e != nil {
			return e.v
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.byKey.Load(key); ok {
		// Nothing is evicted while the lock is held, so this one is alive.
		e := e.(*entry[V])
		e.touch(tick)
		return e.v
	}
	if len(r.list) >= r.opt.Max && !r.evict(tick) {
		return r.sharedLocked()
	}
	// The key may be a piece of a large request: keep no more than the piece.
	key = strings.Clone(key)
	e := newEntry(key, r.opt.New(key), tick)
	r.add(e)
	return e.v
}

func (r *Registry[V]) shared() V {
	if e := r.overflow.Load(); e != nil {
		return e.v
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sharedLocked()
}

func (r *Registry[V]) sharedLocked() V {
	if e := r.overflow.Load(); e != nil {
		return e.v
	}
	e := newEntry(r.opt.OverflowKey, r.opt.New(r.opt.OverflowKey), 0)
	r.overflow.Store(e)
	return e.v
}

// tick counts time in steps of 2^30 ns, about 1.07 s.
func (r *Registry[V]) tick(now mono.Instant) int64 { return int64(now.Sub(r.epoch)) >> 30 }
