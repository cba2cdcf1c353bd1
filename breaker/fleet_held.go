package breaker

import "weak"

// held is what a fleet keeps by name of breakers that others own. It keeps none of
// them alive, and of their names at most about twice as many as there are breakers.
type held[V any] struct {
	all     map[string]V
	sweepAt int // names
}

const leastSweep = 64

// set keeps v for a name. If there are many names by now, those are dropped of which
// nothing is alive any more.
func (h *held[V]) set(name string, v V, alive func(V) bool) {
	if h.all == nil {
		h.all, h.sweepAt = map[string]V{}, leastSweep
	}
	if len(h.all) >= h.sweepAt {
		for name, v := range h.all {
			if !alive(v) {
				delete(h.all, name)
			}
		}
		h.sweepAt = max(leastSweep, 2*len(h.all))
	}
	h.all[name] = v
}

func alive[T any](p weak.Pointer[T]) bool { return p.Value() != nil }

// compact returns those of a list that are alive, with room for one more.
func compact[T any](list []weak.Pointer[T]) []weak.Pointer[T] {
	kept := make([]weak.Pointer[T], 0, len(list)+1) // others may be reading list
	for _, p := range list {
		if alive(p) {
			kept = append(kept, p)
		}
	}
	return kept
}
