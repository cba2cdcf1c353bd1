package grpcmw_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// journal is what the parts of a client note, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines
}

// logging notes the end of what passes it, in the manner of go-grpc-middleware: of
// a call, or of an attempt.
func (j *journal) logging(what string) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, m string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoker(ctx, m, req, reply, cc, opts...)
			j.note("%s %v", what, status.Code(err))
			return err
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, m string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, m, opts...)
			if err != nil {
				j.note("%s %v", what, status.Code(err))
				return nil, err
			}
			return &loggedStream{ClientStream: s, end: func(err error) { j.note("%s %v", what, status.Code(err)) }}, nil
		}),
	}
}

// loggedStream tells of the first error of RecvMsg, an EOF being none.
type loggedStream struct {
	grpc.ClientStream
	end func(error)
}

func (s *loggedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil && s.end != nil {
		end := s.end
		s.end = nil
		if err == io.EOF {
			end(nil)
		} else {
			end(err)
		}
	}
	return err
}

// authority signs what passes it with a number that is never the same.
type authority struct {
	key    string
	tokens int
}

func (a *authority) sign(ctx context.Context) context.Context {
	a.tokens++
	return metadata.AppendToOutgoingContext(ctx, a.key, fmt.Sprint(a.tokens))
}

func (a *authority) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, m string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoker(a.sign(ctx), m, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, m string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return streamer(a.sign(ctx), desc, cc, m, opts...)
		}),
	}
}

// GetRequestMetadata makes an authority credentials of gRPC's own.
func (a *authority) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	a.tokens++
	return map[string]string{a.key: fmt.Sprint(a.tokens)}, nil
}

func (*authority) RequireTransportSecurity() bool { return false }

// spans notes the begin and the end of each RPC on the wire with its parent, in
// the manner of otelgrpc's stats handler.
type spans struct{ *journal }

type spanKey struct{}

func (s spans) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	parent, _ := ctx.Value(spanKey{}).(string)
	return context.WithValue(ctx, spanKey{}, parent+"/attempt")
}

func (s spans) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch event.(type) {
	case *stats.Begin:
		s.note("begin %v", ctx.Value(spanKey{}))
	case *stats.End:
		// Not with what status: gRPC tells its handlers of an attempt that was
		// answered before its message was sent as of a good one.
		s.note("end %v", ctx.Value(spanKey{}))
	}
}

func (s spans) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (s spans) HandleConn(context.Context, stats.ConnStats) {}

// What stands before the kit sees calls, what stands behind it sees attempts, and
// so do credentials and a stats handler, wherever they are given. D090.
func TestG4_OtherInterceptorsBeforeAndBehind(t *testing.T) {
	for name, do := range map[string]func(context.Context, *grpc.ClientConn) (string, error){
		"unary": func(ctx context.Context, cc *grpc.ClientConn) (string, error) { return invoke(ctx, cc) },
		"server stream": func(ctx context.Context, cc *grpc.ClientConn) (string, error) {
			s, err := open(ctx, cc, serverStream)
			if err != nil {
				return "", err
			}
			texts, err := readAll(s)
			return fmt.Sprint(texts), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, fail(codes.Unavailable), fail(codes.Unavailable), say("answer"))
				j := &journal{}
				outer, inner, creds := &authority{key: "outer"}, &authority{key: "inner"}, &authority{key: "creds"}
				var opts []grpc.DialOption
				opts = append(opts, grpc.WithStatsHandler(spans{j}), grpc.WithPerRPCCredentials(creds))
				opts = append(opts, j.logging("call")...)
				opts = append(opts, outer.options()...)
				opts = append(opts, grpcmw.DialOptions(newKit(t, with(readOnly)))...)
				opts = append(opts, inner.options()...)
				opts = append(opts, j.logging("attempt")...)
				ctx := context.WithValue(t.Context(), spanKey{}, "parent")

				got, err := do(ctx, s.Dial(opts...))
				require.NoError(t, err)
				require.Contains(t, got, "answer")
				require.Equal(t, []string{
					"begin parent/attempt", "end parent/attempt", "attempt Unavailable",
					"begin parent/attempt", "end parent/attempt", "attempt Unavailable",
					"begin parent/attempt", "end parent/attempt", "attempt OK",
					"call OK",
				}, j.read())

				var signed []string
				for _, md := range s.incoming {
					signed = append(signed, fmt.Sprint(md["outer"], md["inner"], md["creds"]))
				}
				require.Equal(t, []string{"[1] [1] [1]", "[1] [2] [2]", "[1] [3] [3]"}, signed)
			})
		})
	}
}

// A call that the kit refuses reaches nobody behind it, and those before it see
// the status.
func TestG4_ARefusedCallReachesNobodyBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		j := &journal{}
		var opts []grpc.DialOption
		opts = append(opts, j.logging("call")...)
		opts = append(opts, grpcmw.DialOptions(newKit(t, with(oneAttempt)))...)
		opts = append(opts, j.logging("attempt")...)
		cc := s.Dial(opts...)
		for range 5 {
			_, _ = invoke(t.Context(), cc)
		}
		before := len(j.read())
		_, err := invoke(t.Context(), cc)
		require.Error(t, err)
		_, err = cc.NewStream(t.Context(), serverStream, method)
		require.Error(t, err)
		require.Equal(t, []string{"call Unavailable", "call Unavailable"}, j.read()[before:])
	})
}

// An interceptor behind the kit may answer by itself, and one before it may turn
// the kit's error into what it likes: neither leaves anything held.
func TestG4_InterceptorsThatAnswerThemselves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say("never asked"))
		k := newKit(t, with(single))
		opts := append(grpcmw.DialOptions(k), grpc.WithChainUnaryInterceptor(func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			reply.(*wrapperspb.StringValue).Value = "from a cache"
			return nil
		}))
		cc := s.Dial(opts...)
		for range 5 {
			got, err := invoke(t.Context(), cc)
			require.NoError(t, err)
			require.Equal(t, "from a cache", got)
		}
		require.Zero(t, s.hitCount())
	})
}
