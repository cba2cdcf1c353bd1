package timeout

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Held is the context of an attempt that outlives the function that makes it, as a
// response body or a stream does. Its deadline is the caller's. It is cancelled,
// with an [*Error] as the cause, when one of its limits passes: on opening, on the
// first message, and on each wait for the next piece.
//
// As [Own] it costs little to whoever only passes it on: a timer, one for all
// limits, and a place among the caller's children are made when somebody first asks
// for Done. Before that nobody could be interrupted, and a limit has passed when
// the clock says so. A nil Held is valid and has no limits.
type Held struct {
	caller         context.Context
	opening, first part
	idle           pause

	state atomic.Uint32

	mu     sync.Mutex
	cause  error // why it was cut
	made   context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	armed  bool
	due    mono.Instant // when the timer rings, if it is armed
}

const (
	heldIdle uint32 = iota
	heldCut         // ended before anybody asked for Done
	heldMade        // from here on it is the standard library's
)

// Hold returns the context of an attempt that begins now, with bounds on its opening
// and on its first message; the zero Bound is none.
func Hold(caller context.Context, now mono.Instant, opening, first Bound) *Held {
	h := &Held{caller: caller}
	h.opening.begin(opening, now)
	h.first.begin(first, now)
	return h
}

// Opened ends the limit on opening. It returns nil if that was in time, and else
// the error: the context is cancelled then, or is about to be, whatever the wire has
// just returned. A later call gives the same answer.
func (h *Held) Opened() *Error {
	if h == nil {
		return nil
	}
	return h.stop(&h.opening)
}

// Delivered ends the limit on the first message, as Opened does for opening.
func (h *Held) Delivered() *Error {
	if h == nil {
		return nil
	}
	return h.stop(&h.first)
}

// AwaitsFirst reports whether there is a limit on the first message.
func (h *Held) AwaitsFirst() bool { return h != nil && h.first.state.Load() != partNone }

func (h *Held) stop(p *part) *Error {
	switch p.state.Load() {
	case partNone, partMet:
		return nil
	case partRuns:
		if p.pass(mono.Now()) {
			h.cut(p.error())
		}
		p.state.CompareAndSwap(partRuns, partMet)
	}
	if p.state.Load() == partPassed {
		return p.error()
	}
	return nil
}

// WatchIdle begins to limit each wait, from BeginWait to EndWait. Between two waits
// the limit does not run: the caller's own pauses do not count. Zero is no limit.
func (h *Held) WatchIdle(limit time.Duration) {
	if h == nil || limit <= 0 {
		return
	}
	h.idle.limit = limit
	h.idle.state.Store(pauseRests)
	if h.state.Load() == heldMade {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.arm(mono.Now())
	}
}

// BeginWait begins a wait.
func (h *Held) BeginWait() {
	if h != nil && h.idle.state.Load() == pauseRests {
		h.idle.began.Store(int64(mono.Now()))
		h.idle.state.CompareAndSwap(pauseRests, pauseWaits)
	}
}

// EndWait ends a wait. It returns the error of the limit if that has passed.
func (h *Held) EndWait() *Error {
	if h == nil {
		return nil
	}
	if h.state.Load() != heldMade && h.idle.state.Load() == pauseWaits && h.idle.pass(mono.Now()) {
		h.cut(h.idle.error())
	}
	h.idle.state.CompareAndSwap(pauseWaits, pauseRests)
	return h.idled()
}

// idled returns the error of the limit on waits if it has passed.
func (h *Held) idled() *Error {
	if h.idle.state.Load() != pausePassed {
		return nil
	}
	return h.idle.error()
}

// Passed returns the error of the limit that has passed, if one has, and ends those
// on opening and on the first message.
func (h *Held) Passed() *Error {
	if h == nil {
		return nil
	}
	opening, first := h.Opened(), h.Delivered()
	switch idle := h.idled(); {
	case idle != nil:
		return idle
	case opening != nil:
		return opening
	}
	return first
}

// Release ends the context and its limits. It may be called again.
func (h *Held) Release() {
	if h == nil {
		return
	}
	h.opening.state.CompareAndSwap(partRuns, partMet)
	h.first.state.CompareAndSwap(partRuns, partMet)
	h.idle.end()
	h.cut(nil)
}

// Deadline returns the caller's deadline.
func (h *Held) Deadline() (time.Time, bool) { return h.caller.Deadline() }

// Done returns a channel that is closed when the context has ended.
func (h *Held) Done() <-chan struct{} { return h.standard().Done() }

// Err returns why Done is closed, nil while it is not.
func (h *Held) Err() error {
	switch h.state.Load() {
	case heldMade:
		return h.made.Err()
	case heldCut:
		return context.Canceled
	}
	if h.caller.Err() == nil {
		if !h.passing(mono.Now()) {
			return nil
		}
	}
	return h.standard().Err() // what is told once stays true
}

// Value returns what the caller's context has under key.
func (h *Held) Value(key any) any {
	if h.state.Load() == heldIdle {
		return h.caller.Value(key)
	}
	return h.standard().Value(key) // package context looks for its own in there
}

// standard returns the standard library's context that stands for this one.
func (h *Held) standard() context.Context {
	if h.state.Load() == heldMade {
		return h.made
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.state.Load() {
	case heldIdle:
		h.made, h.cancel = context.WithCancelCause(h.caller)
		h.state.Store(heldMade)
		h.arm(mono.Now())
	case heldCut:
		// The caller's context may be done as well by now, but that is not why.
		h.made, h.cancel = context.WithCancelCause(context.WithoutCancel(h.caller))
		h.cancel(h.cause)
		h.state.Store(heldMade)
	}
	return h.made
}

// cut ends the context for a cause.
func (h *Held) cut(cause error) {
	h.mu.Lock()
	if cause == nil && h.timer != nil {
		h.timer.Stop()
	}
	made := h.state.Load() == heldMade
	if h.state.CompareAndSwap(heldIdle, heldCut) {
		h.cause = cause
	}
	h.mu.Unlock()
	if made {
		h.cancel(cause)
	}
}
