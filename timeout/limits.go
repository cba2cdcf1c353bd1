package timeout

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Limits bounds the waits of a call. For each field zero is: no limit of this
// kind; a negative value is an error. In a policy a nil *Limits is inherited, and
// [Off] is no limit of any kind.
type Limits struct {
	// Total bounds the whole call: every attempt and every wait between them.
	// For HTTP it ends at the response headers; for a unary RPC and for Do when
	// that returns; for a stream once it is open, or with FirstMessage set at its
	// first message.
	Total time.Duration

	// Attempt bounds one attempt, the wait in the bulkhead's queue included. A
	// unary RPC and a function of Do are bounded to their end, an HTTP attempt to
	// the response headers, so an upload counts, a stream while it is being
	// opened. It may not exceed Total.
	Attempt time.Duration

	// FirstMessage bounds the time from the start of an attempt, dial included,
	// to the first byte of an HTTP response body or the first message of a
	// stream. Until that is there nothing reaches the caller, and the attempt may
	// be repeated. It does not apply to unary RPCs and Do.
	FirstMessage time.Duration

	// Idle bounds how long one Read of an HTTP response body, or one RecvMsg of
	// a stream, waits. The caller's own pauses do not count. It does not apply to
	// unary RPCs and Do.
	Idle time.Duration

	// IdleKnownLength confines Idle to HTTP bodies whose length was announced,
	// so that it spares event streams and long polls.
	IdleKnownLength bool

	// Floor is the least time that must be left before the caller's deadline and
	// the end of Total for an attempt to be worth starting. With less, it is refused.
	Floor time.Duration

	off bool
}

// Off returns limits that are switched off: only the caller's context bounds
// the call. Unlike nil, which inherits, it is a decision of its own.
func Off() *Limits { return &Limits{off: true} }

// IsOff reports whether l was made by [Off] or is a copy of such a value.
func (l *Limits) IsOff() bool { return l != nil && l.off }

// Check returns nil, or an error that names every bad field.
func (l Limits) Check() error { return l.check().Err("timeout") }

func (l Limits) check() check.Faults {
	var faults check.Faults
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Total", l.Total}, {"Attempt", l.Attempt}, {"FirstMessage", l.FirstMessage}, {"Idle", l.Idle}, {"Floor", l.Floor}} {
		if f.value < 0 {
			faults.Add(f.name, f.value, "must not be negative; 0 is no limit")
		}
	}
	if l.Total > 0 && l.Attempt > l.Total {
		faults.Add("Attempt", l.Attempt, "must not exceed Total = %v", l.Total)
	}
	if l.IdleKnownLength && l.Idle == 0 {
		faults.Add("IdleKnownLength", true, "has no effect without Idle")
	}
	if l.Total > 0 && l.Floor >= l.Total {
		faults.Add("Floor", l.Floor, "must be less than Total = %v, or no attempt is ever made", l.Total)
	}
	return faults
}
