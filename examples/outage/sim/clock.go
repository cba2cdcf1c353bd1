package sim

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// clock is virtual time and what is to happen in it. Events of the same instant
// happen in the order in which they were planned.
type clock struct {
	start  mono.Instant // of the run, on the clock that breakers and budgets read
	now    time.Duration
	events []event // a heap
	orders uint64
}

type event struct {
	at    time.Duration
	order uint64
	do    func(*request)
	who   *request
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.order < f.order }

// instant returns the present moment as the kit's code is told it.
func (c *clock) instant() mono.Instant { return c.start.Add(c.now) }

// at plans an event.
func (c *clock) at(at time.Duration, do func(*request), who *request) {
	c.orders++
	c.events = append(c.events, event{at, c.orders, do, who})
	h := c.events
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// next takes the next event and goes to its moment; false if there is none.
func (c *clock) next() (event, bool) {
	h := c.events
	if len(h) == 0 {
		return event{}, false
	}
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	c.events = h
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			break
		}
		if right := least + 1; right < last && h[right].before(&h[least]) {
			least = right
		}
		if !h[least].before(&h[i]) {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	c.now = first.at
	return first, true
}
