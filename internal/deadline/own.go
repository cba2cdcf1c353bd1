package deadline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Own is the context of an attempt whose deadline is the kit's own. It is the
// same to whoever uses it as what [context.WithDeadline] makes, and a fraction of
// the price to an attempt that only passes it on: what waits for the deadline, a
// timer and a place among the caller's children, is made when somebody first asks
// for Done or Deadline.
type Own struct {
	caller context.Context
	until  mono.Instant

	// state begins as idle and may go to one of the ends; at last it may be made,
	// from where on the context is the standard library's and all is asked there.
	state  atomic.Uint32
	mu     sync.Mutex // held to make it
	live   bool       // it was when that was made: the deadline there is this one
	made   context.Context
	cancel context.CancelFunc
}

const (
	ownIdle     uint32 = iota
	ownExpired         // somebody was told so
	ownOrphaned        // somebody was told that the caller's context is done
	ownReleased        // the attempt has ended
	ownMade
)

// Deadline returns when the limit passes.
func (o *Own) Deadline() (time.Time, bool) {
	if o.state.Load() == ownMade && o.live {
		return o.made.Deadline()
	}
	return o.deadline(), true
}

func (o *Own) deadline() time.Time {
	now := time.Now()
	return now.Add(o.until.Sub(mono.Of(now)))
}

// Done returns a channel that is closed when the limit has passed, the caller's
// context is done, or the attempt has ended.
func (o *Own) Done() <-chan struct{} { return o.standard().Done() }

// Err returns why Done is closed, nil while it is not.
func (o *Own) Err() error {
	for {
		switch o.state.Load() {
		case ownMade:
			return o.made.Err()
		case ownExpired:
			return context.DeadlineExceeded
		case ownOrphaned:
			return o.caller.Err()
		case ownReleased:
			return context.Canceled
		}
		// What is told once stays true, so it is noted before.
		switch {
		case o.caller.Err() != nil:
			o.state.CompareAndSwap(ownIdle, ownOrphaned)
		case !mono.Now().Before(o.until):
			o.state.CompareAndSwap(ownIdle, ownExpired)
		default:
			return nil
		}
	}
}

// Value returns what the caller's context has under key.
func (o *Own) Value(key any) any {
	switch o.state.Load() {
	case ownIdle, ownOrphaned:
		return o.caller.Value(key)
	}
	return o.standard().Value(key) // package context looks for a cause there
}

// Release ends the context. On nil it does nothing.
func (o *Own) Release() {
	if o == nil || o.state.CompareAndSwap(ownIdle, ownReleased) {
		return
	}
	if o.state.Load() == ownMade {
		o.cancel()
	}
}

// standard returns the standard library's context that stands for this one.
func (o *Own) standard() context.Context {
	if o.state.Load() == ownMade {
		return o.made
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		state := o.state.Load()
		if state == ownMade {
			return o.made
		}
		made, cancel := o.make(state)
		o.made, o.cancel, o.live = made, cancel, state == ownIdle
		if o.state.CompareAndSwap(state, ownMade) {
			return made
		}
		cancel() // it has ended meanwhile
	}
}

// make makes a context that is in that state.
func (o *Own) make(state uint32) (context.Context, context.CancelFunc) {
	switch state {
	case ownIdle:
		return context.WithDeadline(o.caller, o.deadline())
	case ownOrphaned:
		return context.WithCancel(o.caller)
	}
	// The caller's context may be done as well by now, but that is not why.
	apart := context.WithoutCancel(o.caller)
	if state == ownExpired {
		return context.WithDeadline(apart, time.Now())
	}
	made, cancel := context.WithCancel(apart)
	cancel()
	return made, cancel
}
