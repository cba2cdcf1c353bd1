package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

var insecureCredentials = insecure.NewCredentials()

// detailed is a status with a detail message.
func detailed(t *testing.T, code codes.Code) *status.Status {
	t.Helper()
	st, err := status.New(code, "db down").WithDetails(wrapperspb.String(code.String()))
	require.NoError(t, err)
	return st
}

func requireDetail(t *testing.T, code codes.Code, err error) {
	t.Helper()
	for _, err := range []error{err, fmt.Errorf("around: %w", err)} {
		require.Equal(t, code, status.Code(err))
		details := status.Convert(err).Details()
		require.Len(t, details, 1)
		require.Equal(t, code.String(), details[0].(*wrapperspb.StringValue).GetValue())
	}
}

func TestD072_TheServersCodeAndDetailsSurvive(t *testing.T) { // G1
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, func(grpc.ServerStream) error { return detailed(t, code).Err() })
				cc := s.connect(t, newKit(t, with(readOnly)))
				_, err := invoke(t.Context(), cc)
				requireDetail(t, code, err)
				require.Equal(t, "db down", status.Convert(err).Message())

				stream, err := open(t.Context(), cc, serverStream)
				require.NoError(t, err)
				_, err = readAll(stream)
				requireDetail(t, code, err)
			})
		})
	}
}

// An error to which nothing was added is the very value that gRPC returned.
func TestG1_NothingAddedNothingWrapped(t *testing.T) {
	for _, want := range []error{
		status.Error(codes.NotFound, "x"), status.Error(codes.Unavailable, "x"), errors.New("no status"),
	} {
		u := grpcmw.UnaryClientInterceptor(newKit(t, with(oneAttempt)))
		err := u(t.Context(), method, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return want })
		require.Same(t, want, err)
	}
}

// The kit's own errors have a status and are found through it and through %w.
func TestG1_TheKitsErrorsHaveAStatus(t *testing.T) {
	last := detailed(t, codes.Unavailable).Err()
	answering := func(err error) grpc.UnaryInvoker {
		return func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			if err != nil {
				return err
			}
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	for name, c := range map[string]struct {
		change func(p *holdfast.Policy)
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		before int // calls before the one that counts
		inner  grpc.UnaryInvoker
		code   codes.Code
		is     []error
		detail bool
	}{
		"open":  {change: oneAttempt, before: 5, inner: answering(last), code: codes.Unavailable, is: []error{breaker.ErrOpen}},
		"limit": {change: oneAttempt, inner: answering(nil), code: codes.DeadlineExceeded, is: []error{timeout.ErrExceeded, context.DeadlineExceeded}},
		"floor": {
			change: func(p *holdfast.Policy) { p.Timeout.Floor = 50 * time.Millisecond },
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 10*time.Millisecond)
			},
			inner: answering(nil), code: codes.DeadlineExceeded, is: []error{timeout.ErrFloor},
		},
		"caller cancels": {
			change: oneAttempt,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Millisecond, cancel)
				return ctx, cancel
			},
			inner: answering(nil), code: codes.Canceled, is: []error{context.Canceled},
		},
		"caller cancels with a status as cause": {
			change: oneAttempt,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Millisecond, func() { cancel(last) })
				return ctx, func() { cancel(nil) }
			},
			inner: answering(nil), code: codes.Canceled, is: []error{context.Canceled, last},
		},
		"caller's deadline": {
			change: oneAttempt,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 10*time.Millisecond)
			},
			inner: answering(nil), code: codes.DeadlineExceeded, is: []error{context.DeadlineExceeded},
		},
		"stopped, no time": {
			change: func(p *holdfast.Policy) {
				readOnly(p)
				p.Retry.Backoff = retry.Backoff{Base: 5 * time.Second, Jitter: retry.NoJitter}
			},
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 300*time.Millisecond)
			},
			inner: answering(last), code: codes.Unavailable, is: []error{retry.ErrNoTime, last}, detail: true,
		},
		"stopped, open": {change: func(p *holdfast.Policy) { readOnly(p); p.Breaker.Consecutive = 2 }, inner: answering(last), code: codes.Unavailable, is: []error{breaker.ErrOpen, last}, detail: true},
		"stopped, last a limit": {
			change: func(p *holdfast.Policy) { readOnly(p); p.Breaker.Consecutive = 2 },
			inner:  answering(nil), code: codes.DeadlineExceeded, is: []error{breaker.ErrOpen, timeout.ErrExceeded},
		},
		"fallback fails too": {
			change: func(p *holdfast.Policy) {
				readOnly(p)
				p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) {
					return nil, status.Error(codes.NotFound, "not in the cache")
				}}
			},
			before: 3, inner: answering(last), code: codes.Unavailable, is: []error{breaker.ErrOpen},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				u := grpcmw.UnaryClientInterceptor(newKit(t, with(c.change)))
				for range c.before {
					_ = u(t.Context(), method, nil, nil, nil, c.inner)
				}
				ctx := t.Context()
				if c.ctx != nil {
					var cancel context.CancelFunc
					ctx, cancel = c.ctx(ctx)
					defer cancel()
				}
				err := u(ctx, method, nil, nil, nil, c.inner)
				for _, err := range []error{err, fmt.Errorf("around: %w", err)} {
					require.Equal(t, c.code, status.Code(err), "%v", err)
					require.Equal(t, err.Error(), status.Convert(err).Message())
					for _, is := range c.is {
						require.ErrorIs(t, err, is)
					}
				}
				if c.detail {
					requireDetail(t, c.code, err)
				}
			})
		})
	}
}

func TestG1_AFullBulkhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := grpcmw.UnaryClientInterceptor(newKit(t, with(single)))
		err := u(t.Context(), method, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			return u(context.WithoutCancel(ctx), method, nil, nil, nil, nil) // the only permit is taken
		})
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		var full *bulkhead.FullError
		require.ErrorAs(t, err, &full)
	})
}

// A refusal of a kit further in is neutral here, and never repeated.
func TestARefusalInsideIsNotAFailureHere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen verdicts
		s := play(t, fail(codes.Unavailable))
		outer := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			seen.note(p)
			p.Breaker.MinCalls, p.Breaker.FailureRate = 10, 1
		}))
		cc := s.Dial(append(grpcmw.DialOptions(outer), grpcmw.DialOptions(newKit(t, with(oneAttempt)))...)...)
		for range 20 {
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Unavailable, status.Code(err))
		}
		require.Equal(t, 5, s.hitCount())
		classes := seen.take()
		require.Len(t, classes, 24) // 3 attempts, then 3 of which the last is refused, then one each
		for i, class := range classes {
			require.Equal(t, i >= 5, class == call.Refused)
		}
	})
}
