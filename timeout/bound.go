package timeout

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Bound is the limit that holds for one attempt: the nearest of several. The
// zero Bound is no limit.
type Bound struct {
	Limit string        // which one, as in [Error]
	Whole time.Duration // its length, for the error's text
	Left  time.Duration // what remains of it now; 0 is no limit
}

// Nearer returns b or, if it is nearer, the limit named limit that begins now
// and lasts for whole. Zero is no limit.
func (b Bound) Nearer(limit string, whole time.Duration) Bound {
	if whole > 0 && (b.Left == 0 || whole < b.Left) {
		return Bound{limit, whole, whole}
	}
	return b
}

// Sooner reports whether the bound passes before that long.
func (b Bound) Sooner(left time.Duration) bool { return b.Left > 0 && b.Left < left }

// Error returns the error that says this limit has passed.
func (b Bound) Error() *Error { return &Error{Limit: b.Limit, After: b.Whole} }

// Context returns ctx with the bound as its deadline, counted from now, and that
// context as what has to be released when the attempt ends. callers is how long it
// is to the deadline that ctx has. If the bound is zero or not sooner than that, it
// is ctx itself and own is nil.
func (b Bound) Context(ctx context.Context, now mono.Instant, callers time.Duration) (_ context.Context, own *Own) {
	if !b.Sooner(callers) {
		return ctx, nil
	}
	own = &Own{caller: ctx, until: now.Add(b.Left)}
	return own, own
}

// Watch is a limit on the first part of an attempt whose context lives longer:
// it cancels that context unless it is stopped in time. It costs a timer and no
// goroutine. A nil Watch is valid and never fires.
type Watch struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	bound  Bound
	state  atomic.Uint32 // watchRuns, then one of the others for ever
}

const (
	watchRuns uint32 = iota
	watchStopped
	watchFired
)

// Watch starts the limit. When it passes, cancel is called with the bound's
// [*Error]. For the zero Bound it returns nil.
func (b Bound) Watch(cancel context.CancelCauseFunc) *Watch {
	if b.Left <= 0 {
		return nil
	}
	w := &Watch{cancel: cancel, bound: b}
	w.timer = time.AfterFunc(b.Left, w.fire)
	return w
}

func (w *Watch) fire() {
	if w.state.CompareAndSwap(watchRuns, watchFired) {
		w.cancel(w.bound.Error())
	}
}

// Stop ends the limit. It returns nil if it ended in time, and else the error:
// the attempt's context is cancelled, or is about to be, whatever the wire has
// just returned. A later Stop gives the same answer.
func (w *Watch) Stop() *Error {
	if w == nil {
		return nil
	}
	if w.state.CompareAndSwap(watchRuns, watchStopped) {
		w.timer.Stop()
	}
	if w.state.Load() == watchFired {
		return w.bound.Error()
	}
	return nil
}
