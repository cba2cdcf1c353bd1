package timeout

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// part is a limit on the first part of an attempt.
type part struct {
	limit string
	whole time.Duration
	until mono.Instant
	state atomic.Uint32 // partRuns, then one of the others for ever
}

const (
	partNone uint32 = iota // there is no limit
	partRuns
	partMet
	partPassed
)

func (p *part) begin(b Bound, now mono.Instant) {
	if b.Left > 0 {
		p.limit, p.whole, p.until = b.Limit, b.Whole, now.Add(b.Left)
		p.state.Store(partRuns)
	}
}

// pass reports whether it is now that the limit passes.
func (p *part) pass(now mono.Instant) bool {
	return p.state.Load() == partRuns && now >= p.until && p.state.CompareAndSwap(partRuns, partPassed)
}

func (p *part) error() *Error { return &Error{Limit: p.limit, After: p.whole} }

// pause is a limit on each wait.
type pause struct {
	limit time.Duration
	began atomic.Int64 // a mono.Instant: of the wait that runs
	state atomic.Uint32
}

const (
	pauseNone uint32 = iota // there is no limit
	pauseRests
	pauseWaits
	pausePassed // for ever
	pauseOver   // for ever
)

// until returns when the wait that runs has lasted too long.
func (p *pause) until() mono.Instant { return mono.Instant(p.began.Load()).Add(p.limit) }

// pass reports whether it is now that the limit passes.
func (p *pause) pass(now mono.Instant) bool {
	return p.state.Load() == pauseWaits && now >= p.until() && p.state.CompareAndSwap(pauseWaits, pausePassed)
}

// end ends the limit, if it has not passed.
func (p *pause) end() {
	for s := p.state.Load(); s == pauseRests || s == pauseWaits; s = p.state.Load() {
		p.state.CompareAndSwap(s, pauseOver)
	}
}

func (p *pause) error() *Error { return &Error{Limit: "Idle", After: p.limit} }

// passing ends the context if one of its limits passes now, and reports whether it
// has ended.
func (h *Held) passing(now mono.Instant) bool {
	switch {
	case h.opening.pass(now):
		h.cut(h.opening.error())
	case h.first.pass(now):
		h.cut(h.first.error())
	case h.idle.pass(now):
		h.cut(h.idle.error())
	}
	return h.state.Load() == heldCut
}

// arm sets the timer for what may pass next, unless it rings before that anyhow. A
// limit that has ended meanwhile is left to ring in vain. h.mu is held.
func (h *Held) arm(now mono.Instant) {
	next, some := now, false
	sooner := func(at mono.Instant) {
		if !some || at < next {
			next, some = at, true
		}
	}
	for _, p := range [...]*part{&h.opening, &h.first} {
		if p.state.Load() == partRuns {
			sooner(p.until)
		}
	}
	switch h.idle.state.Load() {
	case pauseRests: // a wait may begin at once
		sooner(now.Add(h.idle.limit))
	case pauseWaits:
		sooner(h.idle.until())
	}
	if !some || h.armed && h.due <= next {
		return
	}
	h.armed, h.due = true, next
	if h.timer == nil {
		h.timer = time.AfterFunc(next.Sub(now), h.ring)
		return
	}
	h.timer.Reset(next.Sub(now))
}

// ring is what the timer calls.
func (h *Held) ring() {
	now := mono.Now()
	h.passing(now)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.armed = false; h.made.Err() == nil {
		h.arm(now)
	}
}
