package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
)

// orders is the service that the orders are for. It keeps the key of each order
// with its effect, and answers a repeat with what it has answered the first time:
// without that a key is an empty promise.
type orders struct {
	mu       sync.Mutex
	down     bool
	lose     int               // how many answers are yet to be lost on their way back
	answers  map[string]string // by key
	effects  map[string]int    // by order: how often it was carried out
	requests int
	repeats  int // that were answered from answers
}

func newOrders() *orders {
	return &orders{answers: map[string]string{}, effects: map[string]int{}}
}

func (o *orders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	order, err := io.ReadAll(io.LimitReader(r.Body, 1<<10))
	key := r.Header.Get("Idempotency-Key")
	o.mu.Lock()
	o.requests++
	if o.down {
		o.mu.Unlock()
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	if err != nil || key == "" || len(order) == 0 {
		o.mu.Unlock()
		http.Error(w, "an order needs a key and a content", http.StatusBadRequest)
		return
	}
	// Key and effect are one transaction here: both or none.
	answer, known := o.answers[key]
	if known {
		o.repeats++
	} else {
		o.effects[string(order)]++
		answer = fmt.Sprintf("order %d: %s", len(o.answers)+1, order)
		o.answers[key] = answer
	}
	lost := o.lose > 0
	if lost {
		o.lose--
	}
	o.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler) // done, but nobody hears of it
	}
	fmt.Fprintln(w, answer)
}

func (o *orders) setDown(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
}

// loseAnswers lets the next n answers get lost.
func (o *orders) loseAnswers(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lose = n
}

// carriedOut returns how many orders were carried out, and how many of them more
// than once.
func (o *orders) carriedOut() (orders, twice int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.effects {
		if n > 1 {
			twice++
		}
	}
	return len(o.effects), twice
}

// seen returns how many requests came, and how many of them were repeats of an
// order that was carried out already.
func (o *orders) seen() (requests, repeats int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.requests, o.repeats
}
