package holdfast

import "context"

// surroundings is what a call finds in its context: where it is made.
type surroundings struct {
	override *Override // for the next call
	nested   bool      // inside an attempt of a call that may be retried
	resource string
}

type surroundingsKey struct{}

var (
	nowhere     = &surroundings{}
	insideCall  = &surroundings{}             // hides an override that was taken
	insideRetry = &surroundings{nested: true} // and stops retries further in
)

// WithResource returns a context whose calls are for a part of their target, such
// as one of the models behind a channel. Breakers and bulkheads with the scope
// TwoLevel keep such a part apart from the others. It goes before the Resource of
// call.Info.
func WithResource(ctx context.Context, resource string) context.Context {
	s := *surroundingsOf(ctx)
	s.resource = resource
	return context.WithValue(ctx, surroundingsKey{}, &s)
}

func surroundingsOf(ctx context.Context) *surroundings {
	if s, ok := ctx.Value(surroundingsKey{}).(*surroundings); ok {
		return s
	}
	return nowhere
}

// enter returns the context for a call's attempts. A kit call made inside one
// has no part in the override, and does not retry if this call does: attempts
// would multiply.
func (s *surroundings) enter(ctx context.Context, retries bool) context.Context {
	nested := s.nested || retries
	var inside *surroundings
	switch {
	case s.override == nil && nested == s.nested:
		return ctx
	case s.resource != "":
		inside = &surroundings{nested: nested, resource: s.resource}
	case nested:
		inside = insideRetry
	default:
		inside = insideCall
	}
	return context.WithValue(ctx, surroundingsKey{}, inside)
}
