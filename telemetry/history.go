package telemetry

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// changes is how many transitions a page remembers, of all kits together.
const changes = 2000

// change is a transition, and when the page heard of it.
type change struct {
	at  time.Time
	kit int // index in the page's kits
	breaker.Transition
}

// history keeps the last transitions, and wakes who waits for the next one.
type history struct {
	mu    sync.Mutex
	ring  []change
	next  int // place of the next one, once the ring is full
	waits map[chan struct{}]bool
}

// add notes a transition.
func (h *history) add(kit int, t breaker.Transition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := change{at: time.Now(), kit: kit, Transition: t}
	if len(h.ring) < changes {
		h.ring = append(h.ring, c)
	} else {
		h.ring[h.next] = c
		h.next = (h.next + 1) % changes
	}
	for wake := range h.waits {
		select {
		case wake <- struct{}{}:
		default: // it knows already
		}
	}
}

// all returns the transitions, the newest first.
func (h *history) all() []change {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]change, 0, len(h.ring))
	for i := range h.ring {
		list = append(list, h.ring[(h.next+len(h.ring)-1-i)%len(h.ring)])
	}
	return list
}

// wake returns a channel that has a value after a transition, until stop is called.
func (h *history) wake() (wake <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waits == nil {
		h.waits = map[chan struct{}]bool{}
	}
	h.waits[c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waits, c)
	}
}
