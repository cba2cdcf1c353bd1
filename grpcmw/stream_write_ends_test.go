package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/timeout"
)

// unaryStream is a unary RPC made as a stream.
var unaryStream = &grpc.StreamDesc{}

var kinds = map[string]*grpc.StreamDesc{
	"server": serverStream, "client": clientStream, "bidi": bidiStream, "unary-shaped": unaryStream,
}

// writeEnd is a way in which a write may end. The server has answered once before.
type writeEnd struct {
	change func(*holdfast.Policy)
	answer hit               // nil is silence
	before func(*writeScene) // the call
	ctx    func(context.Context) (context.Context, context.CancelFunc)
	use    func(*writeScene, grpc.ClientStream) error // nil is to send one message and to read to the end
	code   codes.Code
	is     error
	said   said

	streamOnly bool // no unary RPC ends so
}

type writeScene struct {
	*script
	t  *testing.T
	k  *holdfast.Kit
	cc *grpc.ClientConn
}

// unreachable cuts the connection; what comes of a dial is for off.
func unreachable(off func(*writeScene)) func(*writeScene) {
	return func(s *writeScene) {
		off(s)
		s.Wire.Reset()
		synctest.Wait()
	}
}

func hanging(s *writeScene) { s.Wire.Hang(true) }

func refusing(s *writeScene) { s.Wire.Refuse(true) }

// full takes the bulkhead's only permit.
func full(s *writeScene) {
	_, err := open(s.t.Context(), s.cc, bidiStream)
	require.NoError(s.t, err)
}

func within(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

func leaving(after time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(after, cancel)
		return ctx, cancel
	}
}

// toTheEnd sends one message and reads to the end.
func toTheEnd(_ *writeScene, stream grpc.ClientStream) error {
	if err := stream.SendMsg(wrapperspb.String("hello")); err != nil && err != io.EOF {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	_, err := readAll(stream)
	return err
}

// unread looks at the stream when all is over.
func unread(_ *writeScene, stream grpc.ClientStream) error {
	time.Sleep(time.Second)
	_, err := readAll(stream)
	return err
}

func limited(l timeout.Limits) func(*holdfast.Policy) {
	return func(p *holdfast.Policy) { p.Timeout = &l }
}

func oneThenSilent(s grpc.ServerStream) error {
	if err := s.SendMsg(wrapperspb.String("one")); err != nil {
		return err
	}
	return silent(s)
}

const (
	short = 50 * time.Millisecond
	limit = 100 * time.Millisecond
)

var writeEnds = map[string]writeEnd{
	"the circuit is open": {
		before: func(s *writeScene) {
			for _, b := range s.k.Breakers() {
				b.ForceOpen("")
			}
		},
		code: codes.Unavailable, is: breaker.ErrOpen, said: saidUnsent,
	},
	"the bulkhead is full": {change: single, before: full, code: codes.ResourceExhausted, is: bulkhead.ErrFull, said: saidUnsent},
	"the caller's deadline in the bulkhead's queue": {
		change: func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1} },
		before: full, ctx: within(short), code: codes.DeadlineExceeded, is: context.DeadlineExceeded, said: saidUnsent,
	},
	"too little time is left": {
		change: limited(timeout.Limits{Floor: limit}), ctx: within(short), code: codes.DeadlineExceeded, is: timeout.ErrFloor, said: saidUnsent,
	},
	"the caller's deadline has passed": {ctx: within(-1), code: codes.DeadlineExceeded, is: context.DeadlineExceeded, said: saidUnsent},
	"Attempt at the opening":           {before: unreachable(hanging), code: codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnsent},
	"Total at the opening": {
		change: limited(timeout.Limits{Total: limit}), before: unreachable(hanging),
		code: codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnsent,
	},
	"the caller's deadline at the opening": {
		before: unreachable(hanging), ctx: within(short), code: codes.DeadlineExceeded, is: context.DeadlineExceeded, said: saidUnsent,
	},
	"no connection":                    {before: unreachable(refusing), code: codes.Unavailable},
	"the caller leaves at the opening": {before: unreachable(hanging), ctx: leaving(short), code: codes.Canceled, is: context.Canceled},

	"Idle": {
		change: limited(timeout.Limits{Idle: limit}), answer: oneThenSilent,
		code: codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnknown, streamOnly: true,
	},
	"FirstMessage": {
		change: limited(timeout.Limits{FirstMessage: limit}),
		code:   codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnknown, streamOnly: true,
	},
	"FirstMessage, nobody reading": {
		change: limited(timeout.Limits{FirstMessage: limit}), use: unread,
		code: codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnknown, streamOnly: true,
	},
	"FirstMessage, found by Header": {
		change: limited(timeout.Limits{FirstMessage: limit}),
		use: func(s *writeScene, stream grpc.ClientStream) error {
			md, err := stream.Header()
			require.NoError(s.t, err)
			require.Nil(s.t, md)
			_, err = readAll(stream)
			return err
		},
		code: codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnknown, streamOnly: true,
	},
	"Total, which goes on to the first message": {
		change: limited(timeout.Limits{Total: limit, FirstMessage: time.Second}),
		code:   codes.DeadlineExceeded, is: timeout.ErrExceeded, said: saidUnknown, streamOnly: true,
	},
	"the caller's deadline": {answer: oneThenSilent, ctx: within(short), code: codes.DeadlineExceeded, is: context.DeadlineExceeded, said: saidUnknown},
	"the caller's deadline, nobody reading": {
		answer: oneThenSilent, ctx: within(short), use: unread,
		code: codes.DeadlineExceeded, is: context.DeadlineExceeded, said: saidUnknown, streamOnly: true,
	},

	"the caller leaves": {answer: oneThenSilent, ctx: leaving(short), code: codes.Canceled, is: context.Canceled},
	"the caller leaves for a reason": {
		answer: oneThenSilent, code: codes.Canceled, is: context.Canceled,
		ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(short, func() { cancel(errors.New("gone")) })
			return ctx, func() { cancel(nil) }
		},
	},
	"the caller leaves, nobody reading": {answer: oneThenSilent, ctx: leaving(short), use: unread, code: codes.Canceled, streamOnly: true},
	"a status after a message":          {answer: messages(1, 0, errDown), code: codes.Unavailable},
	"a status that blames the request":  {answer: fail(codes.FailedPrecondition), code: codes.FailedPrecondition},
	"the server's own deadline":         {answer: fail(codes.DeadlineExceeded), code: codes.DeadlineExceeded},
	"the connection breaks": {
		answer: oneThenSilent, before: func(s *writeScene) { time.AfterFunc(short, s.Wire.Reset) }, code: codes.Unavailable,
	},
	"the connection is closed": {
		answer: oneThenSilent, before: func(s *writeScene) { time.AfterFunc(short, func() { _ = s.cc.Close() }) }, code: codes.Canceled,
	},
	"what cannot be sent": {
		use: func(_ *writeScene, stream grpc.ClientStream) error { return stream.SendMsg(7) }, code: codes.Internal, streamOnly: true,
	},
}
