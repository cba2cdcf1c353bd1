package grpcmw

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// statusError gives one of the kit's errors a gRPC status. It unwraps to the error
// and has its text.
type statusError struct {
	err error
	bad bool // it could not even be begun: an override is bad, or an attempt hook has failed
}

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

// GRPCStatus returns the status that status.FromError finds. It is built when
// asked for.
func (e *statusError) GRPCStatus() *status.Status {
	if e.bad {
		return status.New(codes.Internal, e.err.Error())
	}
	st := statusOf(e.err)
	if st.Message() == e.err.Error() {
		return st
	}
	p := proto.CloneOf(st.Proto())
	p.Message = e.err.Error()
	return status.FromProto(p)
}

// withStatus returns err as a caller of gRPC expects it. What has a status
// already comes back as it is, and so does what the kit has nothing to say about.
func withStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	if statusOf(err) == nil {
		return err
	}
	return &statusError{err: err}
}

// statusOf returns the status of an error, nil if it has none. Of a call whose
// end has several errors it is that of the last real failure.
func statusOf(err error) *status.Status {
	if failed, ok := errors.AsType[*fallback.Error](err); ok {
		return statusOf(failed.Primary)
	}
	if stopped, ok := errors.AsType[*retry.StoppedError](err); ok && stopped.Last != nil {
		return statusOf(stopped.Last)
	}
	if end, ok := errors.AsType[*timeout.CallerError](err); ok {
		// Its cause may be anything, even an error with a status of its own.
		return status.New(contextCode(end.Err), err.Error())
	}
	if has, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err); ok {
		return has.GRPCStatus()
	}
	code := codes.Unknown
	switch {
	case errors.Is(err, breaker.ErrOpen):
		code = codes.Unavailable
	case errors.Is(err, bulkhead.ErrFull):
		code = codes.ResourceExhausted
	case errors.Is(err, timeout.ErrExceeded), errors.Is(err, timeout.ErrFloor):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		code = contextCode(err)
	default:
		return nil
	}
	return status.New(code, err.Error())
}

func contextCode(err error) codes.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return codes.Canceled
}
