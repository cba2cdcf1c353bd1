package deadline

import (
	"context"

	"github.com/holdfast-go/holdfast/timeout"
)

// Caller returns the error of the caller's context, nil while it is alive. It
// is the one way to tell who ended an attempt: an error from the wire does not
// say, since HTTP/1.1, HTTP/2 and gRPC report a cancelled context differently.
//
// The error matches ctx.Err() and context.Cause(ctx). It is a [timeout.ErrExceeded]
// only if the caller's cause is one: a limit of a kit further out.
func Caller(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != err {
		return &timeout.CallerError{Err: err, Cause: cause}
	}
	return err
}
