package holdfast

import "context"

// surroundings is what a call finds in its context: where it is made.
type surroundings struct {
	override *Override // for the next call
	nested   bool      // inside an attempt of a call that may be retried
}

type surroundingsKey struct{}

var (
	unmarked    = &surroundings{}
	insideCall  = &surroundings{}             // hides an override that was taken
	insideRetry = &surroundings{nested: true} // and stops retries further in
)

func surroundingsOf(ctx context.Context) *surroundings {
	if s, ok := ctx.Value(surroundingsKey{}).(*surroundings); ok {
		return s
	}
	return unmarked
}

// enter returns the context for a call's attempts. A kit call made inside one
// has no part in the override, and does not retry if this call does: attempts
// would multiply.
func (s *surroundings) enter(ctx context.Context, retries bool) context.Context {
	switch {
	case (retries || s.nested) && (s.override != nil || !s.nested):
		return context.WithValue(ctx, surroundingsKey{}, insideRetry)
	case s.override != nil:
		return context.WithValue(ctx, surroundingsKey{}, insideCall)
	}
	return ctx
}
