package holdfast

import "context"

// surroundings is what a call finds in its context: where it is made.
type surroundings struct {
	override *Override // for the next call
	nested   bool      // inside an attempt of a call that may be retried
	resource string
}

type surroundingsKey struct{}

// within is a context inside a call, with surroundings of its own.
type within struct {
	context.Context
	is *surroundings
}

func (w *within) Value(key any) any {
	if key == (surroundingsKey{}) {
		return w.is
	}
	return w.Context.Value(key)
}

var (
	nowhere     surroundings
	insideCall  = &surroundings{}             // hides an override that was taken
	insideRetry = &surroundings{nested: true} // and stops retries further in
)

// WithResource returns a context whose calls are for a part of their target, such
// as one of the models behind a channel. Breakers and bulkheads with the scope
// TwoLevel keep such a part apart from the others. It takes precedence over the
// Resource of call.Info.
func WithResource(ctx context.Context, resource string) context.Context {
	s := *surroundingsOf(ctx)
	s.resource = resource
	return context.WithValue(ctx, surroundingsKey{}, &s)
}

func surroundingsOf(ctx context.Context) *surroundings {
	if s, ok := ctx.Value(surroundingsKey{}).(*surroundings); ok {
		return s
	}
	return &nowhere
}

// enter returns the context for a call's attempts. A kit call made inside one
// has no part in the override, and does not retry if this call does: attempts
// would multiply. Place is where it may put the context, nil if there is none. If that
// is ctx itself, passes is true.
func (s *surroundings) enter(ctx context.Context, retries bool, place *within) (_ context.Context, passes bool) {
	nested := s.nested || retries
	var inside *surroundings
	switch {
	case s.override == nil && nested == s.nested:
		return ctx, true
	case s.resource != "":
		inside = &surroundings{nested: nested, resource: s.resource}
	case nested:
		inside = insideRetry
	default:
		inside = insideCall
	}
	if place == nil {
		place = new(within)
	}
	*place = within{ctx, inside}
	return place, false
}
