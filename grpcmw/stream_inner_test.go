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
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// An inner interceptor may answer without calling gRPC, fail, or panic.
func TestB1_InnerInterceptorsThatDoNotPlayAlong(t *testing.T) {
	type inner = func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, m string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error)
	for name, c := range map[string]struct {
		inner inner
		use   func(t *testing.T, cc *grpc.ClientConn)
		class call.Class
	}{
		"answers by itself": {
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return &fake{ctx: ctx, recv: io.EOF}, nil
			},
			func(t *testing.T, cc *grpc.ClientConn) {
				stream, err := open(t.Context(), cc, serverStream)
				require.NoError(t, err)
				_, err = readAll(stream)
				require.NoError(t, err)
			}, call.OK,
		},
		// As gRPC does that had to send a request twice.
		"says an end before its status": {
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return &fake{ctx: ctx, recv: io.EOF, then: errDown}, nil
			},
			func(t *testing.T, cc *grpc.ClientConn) {
				stream, err := open(t.Context(), cc, serverStream)
				require.NoError(t, err)
				texts, err := readAll(stream)
				require.Empty(t, texts)
				require.Equal(t, codes.Unavailable, status.Code(err))
			}, call.Unavailable,
		},
		"drops the options": {
			func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, streamer grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return streamer(ctx, d, cc, m)
			},
			func(t *testing.T, cc *grpc.ClientConn) {
				stream, err := open(t.Context(), cc, serverStream)
				require.NoError(t, err)
				_, err = readAll(stream)
				require.NoError(t, err)
			}, call.OK,
		},
		"fails by itself": {
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
				return nil, errors.New("no token")
			},
			func(t *testing.T, cc *grpc.ClientConn) {
				_, err := open(t.Context(), cc, serverStream)
				require.EqualError(t, err, "no token")
			}, call.ServerFault,
		},
		"panics": {
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
				panic("inside")
			},
			func(t *testing.T, cc *grpc.ClientConn) {
				require.PanicsWithValue(t, "inside", func() { _, _ = open(t.Context(), cc, serverStream) })
			}, call.ServerFault,
		},
		"panics later": {
			func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				return &fake{ctx: ctx, panics: true}, nil
			},
			func(t *testing.T, cc *grpc.ClientConn) {
				stream, err := open(t.Context(), cc, serverStream)
				require.NoError(t, err)
				require.PanicsWithValue(t, "inside", func() { _, _ = readAll(stream) })
			}, call.ServerFault,
		},
		"panics over a stream of gRPC's": {
			func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				inner, err := streamer(ctx, d, cc, m, opts...)
				return &fake{ClientStream: inner, panics: true}, err
			},
			func(t *testing.T, cc *grpc.ClientConn) {
				ends := 0
				stream, err := open(t.Context(), cc, serverStream, grpc.OnFinish(func(err error) { require.Error(t, err); ends++ }))
				require.NoError(t, err)
				require.PanicsWithValue(t, "inside", func() { _, _ = readAll(stream) })
				synctest.Wait()
				require.Equal(t, 1, ends)
			}, call.ServerFault,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, messages(1, 0, nil))
				var seen verdicts
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p) })), grpc.WithChainStreamInterceptor(c.inner))
				for range 3 {
					c.use(t, cc)
				}
				want := []call.Class{c.class, c.class, c.class}
				require.Equal(t, want, seen.take())
				ended := 0
				if name == "panics" {
					require.Panics(t, func() {
						_, _ = open(t.Context(), cc, serverStream, grpc.OnFinish(func(err error) { require.Error(t, err); ended++ }))
					})
					require.Equal(t, 1, ended)
				}
			})
		})
	}
}

// fake is a stream that no transport knows.
type fake struct {
	grpc.ClientStream
	ctx    context.Context
	recv   error
	then   error // after that, if it is not nil
	slow   time.Duration
	panics bool
}

func (f *fake) RecvMsg(any) error {
	time.Sleep(f.slow)
	if f.panics {
		panic("inside")
	}
	err := f.recv
	if f.then != nil {
		f.recv = f.then
	}
	return err
}

func (f *fake) SendMsg(any) error { return nil }

func (f *fake) CloseSend() error { return nil }

// An inner interceptor that repeats a stream ends each of its own attempts; the
// kit sees one.
func TestG4_AnInnerRetryIsOneAttempt(t *testing.T) {
	again := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		for range 2 {
			inner, err := streamer(ctx, d, cc, m, opts...)
			if err != nil {
				return nil, err
			}
			if err := inner.RecvMsg(new(wrapperspb.StringValue)); err == nil {
				return inner, nil
			}
		}
		return nil, errDown
	}
	bubble(t, func(t *testing.T) {
		var seen verdicts
		s := play(t, messages(0, 0, errDown), messages(3, 0, nil))
		cc := s.connect(t, newKit(t, with(seen.note)), grpc.WithChainStreamInterceptor(again))
		stream, err := cc.NewStream(t.Context(), serverStream, method)
		require.NoError(t, err)
		texts, err := readAll(stream)
		require.NoError(t, err)
		require.Equal(t, []string{"b", "c"}, texts)
		require.Equal(t, []call.Class{call.OK}, seen.take())
	})
}

// A panic on gRPC's goroutine would end the process: it is kept for the caller,
// or handed to who asked for it.
func TestB1_APanicOnAForeignGoroutineIsReported(t *testing.T) {
	explode := func(p *holdfast.Policy) {
		single(p)
		p.Classify = func(context.Context, call.Info, call.Result) call.Result { panic("classify") }
	}
	t.Run("to the caller's next call", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := play(t, silent)
			cc := s.connect(t, newKit(t, with(explode)))
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := open(ctx, cc, bidiStream)
			require.NoError(t, err)
			cancel()
			synctest.Wait()
			require.PanicsWithValue(t, "classify", func() { _, _ = readAll(stream) })
			_, err = readAll(stream)
			require.Equal(t, codes.Internal, status.Code(err))
			_, err = open(t.Context(), cc, bidiStream)
			require.NoError(t, err, "the permit is free")
		})
	})
	t.Run("to the handler", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			type report struct {
				method string
				value  any
				stack  bool
			}
			var got []report
			s := play(t, silent)
			cc := s.Dial(grpcmw.DialOptions(newKit(t, with(explode)), grpcmw.WithPanicHandler(func(m string, v any, stack []byte) {
				got = append(got, report{m, v, len(stack) > 0})
			}))...)
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := open(ctx, cc, bidiStream)
			require.NoError(t, err)
			cancel()
			synctest.Wait()
			require.Equal(t, []report{{method, "classify", true}}, got)
			_, err = readAll(stream)
			require.Equal(t, codes.Internal, status.Code(err))
		})
	})
	t.Run("on the caller's own it goes on at once", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := play(t, messages(0, 0, nil))
			cc := s.connect(t, newKit(t, with(explode)))
			for range 2 {
				stream, err := open(t.Context(), cc, serverStream)
				require.NoError(t, err)
				require.PanicsWithValue(t, "classify", func() { _, _ = readAll(stream) })
			}
		})
	})
}
