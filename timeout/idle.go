package timeout

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Idle limits each wait of a body or stream for its next piece. Between two
// waits it does not run: the caller's own pauses do not count. It costs one
// timer, which is armed once and not for each wait, and no goroutine. A nil Idle
// is valid and never fires.
type Idle struct {
	limit  time.Duration
	cancel context.CancelCauseFunc
	err    *Error
	timer  *time.Timer

	began atomic.Int64 // a mono.Instant: of the wait that runs
	state atomic.Uint32
}

const (
	idleRests uint32 = iota
	idleWaits
	idleFired   // for ever
	idleStopped // for ever
)

// NewIdle returns a limit that calls cancel with its [*Error] when a wait lasts
// longer than limit. Zero is no limit: nil.
func NewIdle(limit time.Duration, cancel context.CancelCauseFunc) *Idle {
	if limit <= 0 {
		return nil
	}
	i := &Idle{limit: limit, cancel: cancel, err: &Error{Limit: "Idle", After: limit}}
	i.timer = time.AfterFunc(math.MaxInt64, i.look)
	i.timer.Reset(limit) // now that look can see it
	return i
}

// look runs when the timer does: the wait may have begun later than it was set.
func (i *Idle) look() {
	left := i.limit
	switch i.state.Load() {
	case idleWaits:
		left -= mono.Now().Sub(mono.Instant(i.began.Load()))
		if left <= 0 && i.state.CompareAndSwap(idleWaits, idleFired) {
			i.cancel(i.err)
			return
		}
	case idleStopped:
		return
	}
	i.timer.Reset(max(left, 1))
}

// Begin begins a wait.
func (i *Idle) Begin() {
	if i != nil {
		i.began.Store(int64(mono.Now()))
		i.state.CompareAndSwap(idleRests, idleWaits)
	}
}

// End ends a wait.
func (i *Idle) End() {
	if i != nil {
		i.state.CompareAndSwap(idleWaits, idleRests)
	}
}

// Fired returns the error of the limit if it has passed: the context is
// cancelled then, or is about to be.
func (i *Idle) Fired() *Error {
	if i == nil || i.state.Load() != idleFired {
		return nil
	}
	return i.err
}

// Stop ends the limit and frees its timer. It may be called again.
func (i *Idle) Stop() {
	if i == nil {
		return
	}
	for {
		s := i.state.Load()
		if s == idleFired || s == idleStopped || i.state.CompareAndSwap(s, idleStopped) {
			break
		}
	}
	i.timer.Stop()
}
