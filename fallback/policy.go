package fallback

import (
	"context"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/check"
)

// Policy says what a read is answered with when its call has failed. With both
// fields set the stale answer comes first, and Answer is asked if there is none.
type Policy struct {
	// Stale keeps the dependency's answers to give them once more. Nil keeps
	// none.
	Stale *Stale

	// Answer computes the answer; see [Static] for one that is always the same.
	// It returns what the call would have returned: a *http.Response, a
	// proto.Message of the reply's type, or the T of holdfast.Do; nil is no answer,
	// and leaves the call its own end. It runs on the caller's goroutine, bounded
	// by the caller's context, which it must heed. If it fails, the caller gets an
	// [*Error]. Nil computes none.
	Answer func(ctx context.Context, failure Failure) (any, error)

	off bool
}

// Failure is what the fallback is told of the call that failed.
type Failure struct {
	Info     call.Info
	Class    call.Class
	Err      error // the error the caller would get; nil for an HTTP response
	Code     int   // HTTP status or gRPC code, if there was an answer
	Attempts int   // attempts that were admitted; 0 if the first was refused
}

// Static returns an Answer that is the same for every failure: an empty list, a
// default. All callers share the value of a call made with holdfast.Do, which they
// must not change then; a gRPC reply is copied for each. A *http.Response can be
// read once only: use httpmw.StaticAnswer.
func Static(value any) func(context.Context, Failure) (any, error) {
	return func(context.Context, Failure) (any, error) { return value, nil }
}

// Off returns a policy that is switched off: a failed call returns its error.
// Unlike nil, which inherits, it is a decision of its own.
func Off() *Policy { return &Policy{off: true} }

// IsOff reports whether p was made by [Off] or is a copy of such a value.
func (p *Policy) IsOff() bool { return p != nil && p.off }

// Check returns nil, or an error that names every bad field.
func (p Policy) Check() error { return p.check().Err("fallback") }

func (p Policy) check() check.Faults {
	var faults check.Faults
	if p.off {
		return nil
	}
	if p.Answer == nil && p.Stale == nil {
		faults.Add("Answer", nil, "is missing, and so is Stale")
	}
	if p.Stale != nil {
		faults.In("Stale", p.Stale.check())
	}
	return faults
}

// Kind says what a fallback's answer is.
type Kind uint8

// The kinds. The zero Kind is none.
const (
	_ Kind = iota

	// KindStale: an earlier answer of the dependency's own.
	KindStale

	// KindComputed: what Policy.Answer returned.
	KindComputed
)

var kinds = [...]string{"none", "stale", "computed"}

// String returns the kind in lower case, as metrics and logs show it.
func (k Kind) String() string {
	if int(k) >= len(kinds) {
		return "invalid"
	}
	return kinds[k]
}
