package deadline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/timeout"
)

// Held is the context of an attempt that outlives the function that makes it, as a
// response body or a stream does. Its deadline is the caller's. It is cancelled,
// with an [*timeout.Error] as the cause, when one of its limits passes: on opening, on the
// first message, and on each wait for the next piece.
//
// As [Own] it costs little to whoever only passes it on: a timer, one for all
// limits, and a place among the caller's children are made when somebody first asks
// for Done. Before that nobody could be interrupted, and a limit has passed when
// the clock says so. A nil Held is valid and has no limits.
type Held struct {
	caller  context.Context
	opening part
	first   *part // nil if there is none

	idle      time.Duration // limit on each wait
	waitBegan atomic.Int64  // a packed mono.Instant: of the wait that runs
	waits     atomic.Uint32 // idleNone, …

	// state begins as heldAlone and may go to one of the ends; at last it may be
	// heldMade, from where on the context is the standard library's.
	state atomic.Uint32

	mu     sync.Mutex // held to make it, and for its timer
	made   context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer  // nil until there is something to ring for
	due    mono.Instant // when it rings
}

const (
	heldAlone uint32 = iota // nobody has asked for Done
	heldMade
	heldReleased // it ended, and nobody had asked: here with the attempt
	heldOpening  // by that limit
	heldFirst
	heldIdle
)

// Hold returns the context of an attempt that begins now, with bounds on its opening
// and on its first message; the zero Bound is none.
func Hold(caller context.Context, now mono.Instant, opening, first Bound) *Held {
	h := new(Held)
	h.Begin(caller, now, opening, first)
	return h
}

// Begin makes h, which is new, what [Hold] returns: for who has a place for it.
func (h *Held) Begin(caller context.Context, now mono.Instant, opening, first Bound) {
	h.caller = caller
	h.opening.begin(opening, now)
	if first.Left > 0 {
		h.first = new(part)
		h.first.begin(first, now)
	}
}

// Opened ends the limit on opening. It returns nil if that was in time, and else
// the error: the context is cancelled then, or is about to be, whatever the wire has
// just returned. A later call gives the same answer.
func (h *Held) Opened() *timeout.Error {
	if h == nil {
		return nil
	}
	if h.opening.runs() {
		return h.OpenedAt(mono.Now())
	}
	return h.stop(&h.opening, heldOpening, mono.Instant{})
}

// OpenedAt is Opened for a caller that has read the clock.
func (h *Held) OpenedAt(now mono.Instant) *timeout.Error {
	if h == nil {
		return nil
	}
	return h.stop(&h.opening, heldOpening, now)
}

// Delivered ends the limit on the first message, as Opened does for opening.
func (h *Held) Delivered() *timeout.Error {
	if !h.AwaitsFirst() {
		return nil
	}
	return h.stop(h.first, heldFirst, mono.Now())
}

// AwaitsFirst reports whether there is a limit on the first message.
func (h *Held) AwaitsFirst() bool { return h != nil && h.first != nil }

func (h *Held) stop(p *part, end uint32, now mono.Instant) *timeout.Error {
	if p.pass(now) {
		h.end(end)
	}
	p.meet()
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
	h.idle = limit
	h.waits.Store(idleRests)
	if h.state.Load() == heldMade {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.arm(mono.Now())
	}
}

// BeginWait begins a wait.
func (h *Held) BeginWait() {
	if h != nil && h.waits.Load() == idleRests {
		h.waitBegan.Store(mono.Now().Pack())
		h.waits.CompareAndSwap(idleRests, idleWaits)
	}
}

// EndWait ends a wait. It returns the error of the limit if that has passed.
func (h *Held) EndWait() *timeout.Error {
	if h == nil {
		return nil
	}
	if h.state.Load() != heldMade && h.waits.Load() == idleWaits && h.idlePasses(mono.Now()) {
		h.end(heldIdle)
	}
	h.waits.CompareAndSwap(idleWaits, idleRests)
	return h.idled()
}

// idled returns the error of the limit on waits if it has passed.
func (h *Held) idled() *timeout.Error {
	if h.waits.Load() != idlePassed {
		return nil
	}
	return h.idleError()
}

// Passed returns the error of the limit that has passed, if one has, and ends those
// on opening and on the first message.
func (h *Held) Passed() *timeout.Error {
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
	h.opening.meet()
	h.first.meet()
	h.endIdle()
	h.end(heldReleased)
}

// Deadline returns the caller's deadline.
func (h *Held) Deadline() (time.Time, bool) { return h.caller.Deadline() }

// Done returns a channel that is closed when the context has ended.
func (h *Held) Done() <-chan struct{} { return h.standard().Done() }

// Err returns why Done is closed, nil while it is not.
func (h *Held) Err() error {
	switch h.state.Load() {
	case heldAlone:
		if h.caller.Err() == nil && !h.passing(mono.Now()) {
			return nil
		}
		return h.standard().Err() // what is told once stays true
	case heldMade:
		return h.made.Err()
	}
	return context.Canceled
}

// Value returns what the caller's context has under key.
func (h *Held) Value(key any) any {
	if h.state.Load() == heldAlone {
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
	for {
		state := h.state.Load()
		if state == heldMade {
			return h.made
		}
		caller := h.caller
		if state != heldAlone {
			caller = context.WithoutCancel(caller) // it may be done as well by now, but that is not why
		}
		h.made, h.cancel = context.WithCancelCause(caller)
		if state != heldAlone {
			h.cancel(h.cause(state))
		}
		if h.state.CompareAndSwap(state, heldMade) {
			if state == heldAlone {
				h.arm(mono.Now())
			}
			return h.made
		}
		h.cancel(nil) // it has ended meanwhile
	}
}

// end ends the context in one of the ways there are.
func (h *Held) end(as uint32) {
	if h.state.CompareAndSwap(heldAlone, as) || h.state.Load() != heldMade {
		return
	}
	if as == heldReleased {
		h.mu.Lock()
		if h.timer != nil {
			h.timer.Stop()
		}
		h.mu.Unlock()
	}
	h.cancel(h.cause(as))
}

// cause returns the error of the limit that has ended the context, nil if none has.
func (h *Held) cause(end uint32) error {
	switch end {
	case heldOpening:
		return h.opening.error()
	case heldFirst:
		return h.first.error()
	case heldIdle:
		return h.idleError()
	}
	return nil
}
