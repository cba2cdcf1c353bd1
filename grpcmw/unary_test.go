package grpcmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
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

func TestD016_CallersThatGiveUpAreNoFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, after(50*time.Millisecond, say("late")))
		cc := s.connect(t, newKit(t, with(oneAttempt)))
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			_, err := invoke(ctx, cc)
			require.Equal(t, codes.Canceled, status.Code(err))
			require.ErrorIs(t, err, context.Canceled)
			cancel()
		}
		_, err := invoke(t.Context(), cc)
		require.NoError(t, err)
	})
}

func TestD017_ASilentServerOpensTheCircuit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, silent)
		cc := s.connect(t, newKit(t, with(oneAttempt)))
		for range 5 {
			_, err := invoke(t.Context(), cc)
			require.ErrorIs(t, err, timeout.ErrExceeded)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		}
		_, err := invoke(t.Context(), cc)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, 5, s.hitCount())
	})
}

func TestD020_EveryCodeHasItsVerdict(t *testing.T) {
	for code, failure := range map[codes.Code]bool{
		codes.InvalidArgument: false, codes.NotFound: false, codes.AlreadyExists: false, codes.PermissionDenied: false,
		codes.Unauthenticated: false, codes.FailedPrecondition: false, codes.OutOfRange: false, codes.Aborted: false,
		codes.Unimplemented: false, codes.ResourceExhausted: false,
		codes.Canceled: true, codes.Unknown: true, codes.Internal: true, codes.DataLoss: true,
		codes.Unavailable: true, codes.DeadlineExceeded: true, codes.Code(77): true,
	} {
		t.Run(code.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, fail(code))
				cc := s.connect(t, newKit(t, with(oneAttempt)))
				refused := 0
				for range 100 {
					_, err := invoke(t.Context(), cc)
					if errors.Is(err, breaker.ErrOpen) {
						refused++
						continue
					}
					require.Equal(t, code, status.Code(err))
					require.Equal(t, "as scripted", status.Convert(err).Message())
				}
				if failure {
					require.Equal(t, 95, refused)
				} else {
					require.Zero(t, refused)
				}
			})
		})
	}
}

func TestD032_AnAttemptsLimitIsNotTheCallers(t *testing.T) {
	t.Run("the attempt's: repeated", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := play(t, silent, silent, say("third"))
			cc := s.connect(t, newKit(t, with(readOnly)))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			got, err := invoke(ctx, cc)
			require.NoError(t, err)
			require.Equal(t, "third", got)
			require.Equal(t, 3, s.hitCount())
			require.Equal(t, 230*time.Millisecond, time.Since(begin)) // two limits, waits of 10 and 20 ms
		})
	})
	t.Run("the caller's: final", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := play(t, silent)
			cc := s.connect(t, newKit(t, with(readOnly)))
			ctx, cancel := context.WithTimeout(t.Context(), 170*time.Millisecond)
			defer cancel()
			_, err := invoke(ctx, cc)
			require.Equal(t, codes.DeadlineExceeded, status.Code(err))
			require.Equal(t, 2, s.hitCount())
		})
	})
}

func TestD052_WhoEndedIt(t *testing.T) { // T2
	errX := errors.New("x")
	for name, c := range map[string]struct {
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		code codes.Code
		is   []error
		not  []error
	}{
		"the caller cancels": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(50*time.Millisecond, cancel)
				return ctx, cancel
			},
			codes.Canceled, []error{context.Canceled}, []error{timeout.ErrExceeded, context.DeadlineExceeded},
		},
		"the caller cancels with a cause": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(50*time.Millisecond, func() { cancel(errX) })
				return ctx, func() { cancel(nil) }
			},
			codes.Canceled, []error{context.Canceled, errX}, []error{timeout.ErrExceeded},
		},
		"the caller's deadline": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 50*time.Millisecond)
			},
			codes.DeadlineExceeded, []error{context.DeadlineExceeded}, []error{timeout.ErrExceeded, context.Canceled},
		},
		"the kit's limit": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Hour)
			},
			codes.DeadlineExceeded, []error{timeout.ErrExceeded, context.DeadlineExceeded}, []error{context.Canceled},
		},
	} {
		for retries, change := range map[string]func(*holdfast.Policy){"alone": oneAttempt, "inside retry": readOnly, "inside hedge": hedgedRead} {
			t.Run(name+" "+retries, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := play(t, silent)
					cc := s.connect(t, newKit(t, with(change)))
					ctx, cancel := c.ctx(t.Context())
					defer cancel()
					_, err := invoke(ctx, cc)
					require.Equal(t, c.code, status.Code(err), "%v", err)
					for _, is := range c.is {
						require.ErrorIs(t, err, is)
					}
					for _, not := range c.not {
						require.NotErrorIs(t, err, not)
					}
				})
			})
		}
	}
}

// The limit of an attempt is the deadline that the server is told.
func TestT1_TheServerIsToldTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var left time.Duration
		s := play(t, func(ss grpc.ServerStream) error {
			deadline, _ := ss.Context().Deadline()
			left = time.Until(deadline)
			return say("")(ss)
		})
		_, err := invoke(t.Context(), s.connect(t, newKit(t, policy())))
		require.NoError(t, err)
		require.Equal(t, 100*time.Millisecond, left)
	})
}

// A caller who is gone, or has too little time, costs nothing.
func TestT5_NothingIsAdmittedForACallerWhoIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say(""))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { p.Timeout.Floor = 20 * time.Millisecond })))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := invoke(ctx, cc)
		require.Equal(t, codes.Canceled, status.Code(err))

		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = invoke(ctx, cc)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.ErrorIs(t, err, timeout.ErrFloor)
		require.Zero(t, s.hitCount())
	})
}

func TestOnFinishIsCalledOnceForAllAttempts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable), fail(codes.Unavailable), say(""), fail(codes.NotFound))
		cc := s.connect(t, newKit(t, with(readOnly)))
		var ends []codes.Code
		opt := grpc.OnFinish(func(err error) { ends = append(ends, status.Code(err)) })
		_, err := invoke(t.Context(), cc, opt)
		require.NoError(t, err)
		require.Equal(t, []codes.Code{codes.OK}, ends)
		_, err = invoke(t.Context(), cc, opt, opt)
		require.Error(t, err)
		require.Equal(t, []codes.Code{codes.OK, codes.NotFound, codes.NotFound}, ends)
	})
}

func TestOverride(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		cc := s.connect(t, newKit(t, policy()))
		read := holdfast.Override{Safety: call.ReadOnly}
		never := holdfast.Override{Safety: call.ReadOnly, Retry: retry.Off()}

		_, _ = invoke(t.Context(), cc, grpcmw.WithOverride(read))
		require.Equal(t, 3, s.hitCount())
		_, _ = invoke(t.Context(), cc)
		require.Equal(t, 4, s.hitCount(), "it holds for one call")

		time.Sleep(2 * time.Second) // the breaker's cooldown
		s2 := play(t, fail(codes.Unavailable))
		cc = s2.connect(t, newKit(t, policy()))
		_, _ = invoke(holdfast.WithOverride(t.Context(), read), cc, grpcmw.WithOverride(never))
		require.Equal(t, 1, s2.hitCount(), "the call option outranks the context")
		_, _ = invoke(t.Context(), cc, grpcmw.WithOverride(never), grpcmw.WithOverride(read))
		require.Equal(t, 4, s2.hitCount(), "the last one holds")

		_, err := invoke(t.Context(), cc, grpcmw.WithOverride(holdfast.Override{Timeout: &timeout.Limits{Attempt: -1}}))
		require.ErrorContains(t, err, "Override.Timeout.Attempt")
		require.Equal(t, codes.Internal, status.Code(err))
		require.Equal(t, 4, s2.hitCount())
	})
}

func TestAFallbackAnswersARead(t *testing.T) {
	stale, data := wrapperspb.String("stale"), wrapperspb.Bytes([]byte("stale"))
	for name, c := range map[string]struct {
		answer any
		reply  any
		want   string
		bad    string
	}{
		"the reply's type":  {stale, new(wrapperspb.StringValue), "stale", ""},
		"of its own memory": {data, new(wrapperspb.BytesValue), "stale", ""},
		"another type":      {wrapperspb.Bool(true), new(wrapperspb.StringValue), "", "a *wrapperspb.BoolValue, the reply is a *wrapperspb.StringValue"},
		"no message":        {7, new(wrapperspb.StringValue), "", "a int, the reply is"},
		"a nil message":     {(*wrapperspb.StringValue)(nil), new(wrapperspb.StringValue), "", "a nil *wrapperspb.StringValue"},
		"a nil reply":       {stale, (*wrapperspb.StringValue)(nil), "", "the reply is a nil"},
		"another codec's":   {&plain{"stale"}, &plain{}, "stale", ""},
		"and another's nil": {(*plain)(nil), &plain{}, "", "a nil *grpcmw_test.plain"},
		"of two codecs":     {stale, &plain{}, "", "a *wrapperspb.StringValue, the reply is a *grpcmw_test.plain"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, with(func(p *holdfast.Policy) {
				p.Safety = call.ReadOnly
				p.Retry = retry.Off()
				p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return c.answer, nil }}
			}))
			down := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				return status.Error(codes.Unavailable, "down")
			}
			err := grpcmw.UnaryClientInterceptor(k)(t.Context(), method, nil, c.reply, nil, down)
			if c.bad != "" {
				require.ErrorContains(t, err, c.bad)
				require.Equal(t, codes.Unavailable, status.Code(err)) // F5
				return
			}
			require.NoError(t, err)
			switch reply := c.reply.(type) {
			case *wrapperspb.StringValue:
				require.Equal(t, c.want, reply.GetValue())
			case *wrapperspb.BytesValue:
				require.Equal(t, c.want, string(reply.GetValue()))
				clear(reply.GetValue())
				require.Equal(t, c.want, string(data.GetValue()), "the caller's reply is the caller's")
			case *plain:
				require.Equal(t, c.want, reply.text)
			}
		})
	}
}

type plain struct{ text string }

// A permit is given back before the back-off, and whatever ends the call.
func TestK2_NoPermitIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*holdfast.Policy)
		invoker func(ctx context.Context) error
	}{
		"success": {readOnly, func(context.Context) error { return nil }},
		"failure": {readOnly, func(context.Context) error { return status.Error(codes.Unavailable, "") }},
		"panic":   {readOnly, func(context.Context) error { panic("inside") }},
		"classifier": {func(p *holdfast.Policy) {
			p.Classify = func(context.Context, call.Info, call.Result) call.Result { panic("classify") }
		}, func(context.Context) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				u := grpcmw.UnaryClientInterceptor(newKit(t, with(func(p *holdfast.Policy) {
					c.change(p)
					p.Breaker = breaker.Off()
					p.Bulkhead = &bulkhead.Config{Limit: 1}
				})))
				for range 3 {
					func() {
						defer func() { _ = recover() }()
						err := u(t.Context(), method, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
							return c.invoker(ctx)
						})
						require.NotErrorIs(t, err, bulkhead.ErrFull)
					}()
				}
			})
		})
	}
}
