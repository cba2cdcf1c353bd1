package keyed

import (
	"cmp"
	"slices"
)

const (
	// graceTicks is how many whole ticks lie at least between the last use of a
	// value and its eviction.
	graceTicks = 1

	// keepShare: a search over n entries serves the next n/keepShare evictions.
	keepShare = 16
)

// victim is an entry that was idle when last searched.
type victim[V any] struct {
	e    *entry[V]
	used int64
}

// evict makes room for one entry and reports whether it could.
//
// A search looks at every entry, so it is rationed: one that found plenty is
// followed by the next after as many evictions as it kept victims for, one that
// found few by the next in a later tick. So a flood of new keys costs each of
// them a constant number of looks, and every other key none.
func (r *Registry[V]) evict(tick int64) bool {
	if r.takeVictim() {
		return true
	}
	// More than one turn is taken only if all that a search kept were used
	// before they could be taken.
	for r.more || r.searched < tick {
		r.search(tick)
		if r.takeVictim() {
			return true
		}
	}
	r.fullUntil.Store(tick + 1)
	return false
}

func (r *Registry[V]) takeVictim() bool {
	for len(r.victims) > 0 {
		last := len(r.victims) - 1
		w := r.victims[last]
		r.victims[last] = victim[V]{}
		r.victims = r.victims[:last]
		if !r.idle(w.e) || !w.e.kill(w.used) {
			continue // used or made busy since the search
		}
		r.remove(w.e)
		return true
	}
	return false
}

func (r *Registry[V]) search(tick int64) {
	clear(r.victims)
	found := r.victims[:0]
	for _, e := range r.list {
		used := e.used.Load()
		if used < tick-graceTicks && r.idle(e) {
			found = append(found, victim[V]{e, used})
		}
	}
	slices.SortFunc(found, func(a, b victim[V]) int { return cmp.Compare(b.used, a.used) })
	keep := max(1, len(r.list)/keepShare)
	r.more = len(found) > keep
	if r.more {
		n := copy(found, found[len(found)-keep:])
		clear(found[n:])
		found = found[:n]
	}
	r.victims, r.searched = found, tick
}

func (r *Registry[V]) idle(e *entry[V]) bool { return r.opt.Idle == nil || r.opt.Idle(e.v) }

// remove takes an entry that was killed out of the registry.
func (r *Registry[V]) remove(e *entry[V]) {
	r.byKey.Delete(e.key)
	last := len(r.list) - 1
	moved := r.list[last]
	r.list[e.index], moved.index = moved, e.index
	r.list[last] = nil
	r.list = r.list[:last]
	r.evictions++
	if r.opt.Evicted != nil {
		r.opt.Evicted(e.key, e.v)
	}
}
