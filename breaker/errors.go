package breaker

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// ErrOpen matches every refusal by a breaker.
var ErrOpen = errors.New("breaker: open")

// OpenError is a refusal. There is one for each opening, shared by all calls
// refused in it, so it costs nothing to return; what it tells is worked out
// when asked. It matches ErrOpen.
type OpenError struct {
	b     *Breaker
	ep    *episode
	state State
	cause Cause
	why   Reason
	note  string
	until mono.Instant // if ep is nil
}

// Error says which breaker refused and why.
func (e *OpenError) Error() string {
	text := "breaker: " + e.b.key
	switch e.cause {
	case CauseHalfOpen:
		text += " is half-open, its probes are in flight"
	case CauseRamp:
		text += " is recovering, the call is not in the admitted share"
	case CauseForced:
		text += " is forced open"
		if e.note != "" {
			text += ": " + e.note
		}
	default:
		text += " is open"
	}
	return text
}

// Is reports whether target is ErrOpen.
func (e *OpenError) Is(target error) bool { return target == ErrOpen }

// Key returns the name of the breaker.
func (e *OpenError) Key() string { return e.b.key }

// State returns the state that refused.
func (e *OpenError) State() State { return e.state }

// Cause returns why the call was refused.
func (e *OpenError) Cause() Cause { return e.cause }

// Reason returns why the breaker entered the state that refused: the rule or
// probe that opened it, or the command.
func (e *OpenError) Reason() Reason { return e.why }

// Forced reports whether somebody forced the breaker open.
func (e *OpenError) Forced() bool { return e.cause == CauseForced }

// Note returns the reason given to ForceOpen, "" if the breaker is not forced open.
func (e *OpenError) Note() string { return e.note }

// RetryAfter returns, as of now, how long it is before another call is worth
// its while: what is left of the cooldown; while half-open, how long it is at
// most until a probe's lease runs out. It is 0 if the next call may be admitted,
// and if the breaker is forced open, since nobody knows.
func (e *OpenError) RetryAfter() time.Duration { return e.RetryAfterAt(mono.Now()) }

// RetryAfterAt is for the kit's own packages: RetryAfter for a caller that has read the
// clock.
func (e *OpenError) RetryAfterAt(now mono.Instant) time.Duration {
	switch {
	case e.ep == nil:
		return max(e.until.Sub(now), 0)
	case e.cause == CauseOpen:
		return max(e.ep.out.until.Sub(now), 0)
	case e.cause == CauseHalfOpen:
		return e.b.leaseLeft(e.ep, now)
	}
	return 0
}

// leaseLeft returns how long it is until a lease of ep runs out.
func (b *Breaker) leaseLeft(ep *episode, now mono.Instant) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	present := b.now.Load()
	if present.generation() != ep.generation() {
		return 0
	}
	leases := present.out.leases
	if len(leases) == 0 {
		if s := &present.out.share; s.held {
			return max(s.hold.Sub(now), 0) // of another worker
		}
		return 0
	}
	return max(leases[firstEnd(leases)].end.Sub(now), 0)
}
