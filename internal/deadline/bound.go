package deadline

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/timeout"
)

// Bound is the limit that holds for one attempt: the nearest of several. The
// zero Bound is no limit.
type Bound struct {
	Limit string        // which one, as in [timeout.Error]
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
func (b Bound) Error() *timeout.Error { return &timeout.Error{Limit: b.Limit, After: b.Whole} }

// Context returns ctx with the bound as its deadline, counted from now, and that
// context as what has to be released when the attempt ends. callers is how long it
// is to the deadline that ctx has. If the bound is zero or not sooner than that, it
// is ctx itself and own is nil. place is a new Own to put it in, nil if there is none.
func (b Bound) Context(ctx context.Context, now mono.Instant, callers time.Duration, place *Own) (_ context.Context, own *Own) {
	if !b.Sooner(callers) {
		return ctx, nil
	}
	if place == nil {
		place = new(Own)
	}
	place.caller, place.until = ctx, now.Add(b.Left)
	return place, place
}
