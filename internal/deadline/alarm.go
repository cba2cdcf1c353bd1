package deadline

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/timeout"
)

// part is a limit on the first part of an attempt.
type part struct {
	whole time.Duration
	until mono.Instant
	state atomic.Uint32 // partRuns, then one of the others for ever
	limit limit
}

const (
	partNone uint32 = iota // there is no limit
	partRuns
	partMet
	partPassed
)

// limit is the name of a limit in little room.
type limit uint8

var limitNames = [...]string{"", "Total", "Attempt", "ProbeTimeout", "FirstMessage"}

func limitNamed(name string) limit {
	return limit(max(0, slices.Index(limitNames[:], name)))
}

func (p *part) begin(b Bound, now mono.Instant) {
	if b.Left > 0 {
		p.limit, p.whole, p.until = limitNamed(b.Limit), b.Whole, now.Add(b.Left)
		p.state.Store(partRuns)
	}
}

// runs reports whether the limit is there and neither met nor passed. On nil it is not
// there.
func (p *part) runs() bool { return p != nil && p.state.Load() == partRuns }

// pass reports whether it is now that the limit passes.
func (p *part) pass(now mono.Instant) bool {
	return p.runs() && !now.Before(p.until) && p.state.CompareAndSwap(partRuns, partPassed)
}

// meet ends the limit, if it has not passed.
func (p *part) meet() {
	if p.runs() {
		p.state.CompareAndSwap(partRuns, partMet)
	}
}

func (p *part) error() *timeout.Error {
	return &timeout.Error{Limit: limitNames[p.limit], After: p.whole}
}

// The limit on each wait: where it stands.
const (
	idleNone uint32 = iota // there is none
	idleRests
	idleWaits
	idlePassed // for ever
	idleOver   // for ever
)

// idleUntil returns when the wait that runs has lasted too long.
func (h *Held) idleUntil() mono.Instant { return mono.Unpack(h.waitBegan.Load()).Add(h.idle) }

// idlePasses reports whether it is now that the limit passes.
func (h *Held) idlePasses(now mono.Instant) bool {
	return h.waits.Load() == idleWaits && !now.Before(h.idleUntil()) && h.waits.CompareAndSwap(idleWaits, idlePassed)
}

// endIdle ends the limit, if it has not passed.
func (h *Held) endIdle() {
	for s := h.waits.Load(); s == idleRests || s == idleWaits; s = h.waits.Load() {
		h.waits.CompareAndSwap(s, idleOver)
	}
}

func (h *Held) idleError() *timeout.Error { return &timeout.Error{Limit: "Idle", After: h.idle} }

// passing ends the context if one of its limits passes now, and reports whether it
// has ended.
func (h *Held) passing(now mono.Instant) bool {
	switch {
	case h.opening.pass(now):
		h.end(heldOpening)
	case h.first.pass(now):
		h.end(heldFirst)
	case h.idlePasses(now):
		h.end(heldIdle)
	}
	return h.state.Load() > heldMade
}

// unarmed is when a timer rings that is not set.
func unarmed() mono.Instant { return mono.Last() }

// arm sets the timer for what may pass next, unless it rings before that anyhow. A
// limit that has ended meanwhile is left to ring in vain. h.mu is held.
func (h *Held) arm(now mono.Instant) {
	next := unarmed()
	if h.opening.runs() {
		next = h.opening.until
	}
	if h.first.runs() {
		next = mono.Earlier(next, h.first.until)
	}
	switch h.waits.Load() {
	case idleRests: // a wait may begin at once
		next = mono.Earlier(next, now.Add(h.idle))
	case idleWaits:
		next = mono.Earlier(next, h.idleUntil())
	}
	switch {
	case next == unarmed():
	case h.timer == nil:
		h.due, h.timer = next, time.AfterFunc(next.Sub(now), h.ring)
	case next.Before(h.due):
		h.due = next
		h.timer.Reset(next.Sub(now))
	}
}

// ring is what the timer calls.
func (h *Held) ring() {
	now := mono.Now()
	h.passing(now)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.due = unarmed(); h.made.Err() == nil {
		h.arm(now)
	}
}
