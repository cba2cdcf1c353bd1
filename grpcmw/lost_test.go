package grpcmw_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/memnet/memframes"
)

// lingering holds gRPC up between opening a stream again, as it does by itself
// after a refusal, and sending the request again. When the server has ended the
// stream by then, gRPC takes that for an OK.
type lingering struct{ streams atomic.Int32 }

func (l *lingering) HandleRPC(_ context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.OutHeader); ok && l.streams.Add(1)%2 == 0 {
		time.Sleep(time.Millisecond)
	}
}

func (*lingering) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*lingering) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*lingering) HandleConn(context.Context, stats.ConnStats)                       {}

// refuseLate refuses a stream when its request has been sent.
func refuseLate(f *http2.Framer, stream uint32) error {
	time.Sleep(time.Millisecond)
	return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
}

// How a stream ends that gRPC has opened again is the status of the second, or what
// it holds, in whatever way the caller comes to ask.
func TestG3_AnEndThatGRPCSaysTooSoon(t *testing.T) {
	asks := map[string]func(*testing.T, grpc.ClientStream) ([]string, error){
		"RecvMsg": func(_ *testing.T, s grpc.ClientStream) ([]string, error) { return readAll(s) },
		"Header": func(t *testing.T, s grpc.ClientStream) ([]string, error) {
			md, err := s.Header()
			require.NoError(t, err)
			texts, err := readAll(s)
			require.Equal(t, len(texts) > 0, md != nil, "a stream with messages has a header")
			return texts, err
		},
	}
	for name, c := range map[string]struct {
		change   func(*holdfast.Policy)
		second   memframes.Answer
		messages int
		code     codes.Code
		hits     int32
		classes  []call.Class
	}{
		"refused":              {single, refused, 0, codes.Unavailable, 2, []call.Class{call.Unavailable}},
		"refused, safe":        {readOnly, refused, 1, codes.OK, 3, []call.Class{call.Unavailable, call.OK}},
		"reset":                {single, memframes.Reset(http2.ErrCodeInternal), 0, codes.Internal, 2, []call.Class{call.ServerFault}},
		"another status":       {single, notFound, 0, codes.NotFound, 2, []call.Class{call.ClientFault}},
		"no message, but OK":   {single, memframes.Headers(true, ":status", "200", "content-type", contentType, "grpc-status", "0"), 0, codes.OK, 2, []call.Class{call.OK}},
		"a message, before":    {single, whole, 1, codes.OK, 2, []call.Class{call.OK}},
		"connection cut twice": {single, memframes.Close, 0, codes.Unavailable, 2, []call.Class{call.Unavailable}},
	} {
		for how, ask := range asks {
			t.Run(name+", "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := playFrames(t, refuseLate, c.second, whole)
					var seen verdicts
					cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { c.change(p); seen.note(p) })), grpc.WithStatsHandler(new(lingering)))
					stream, err := open(t.Context(), cc, serverStream)
					require.NoError(t, err)
					texts, err := ask(t, stream)
					require.Equal(t, c.code, status.Code(err), "%v", err)
					require.Len(t, texts, c.messages)
					require.Equal(t, c.hits, int32(s.Streams()))
					require.Equal(t, c.classes, seen.take())
				})
			})
		}
	}
}

// hasty is a stream that says an OK before its status, as gRPC does.
type hasty struct {
	grpc.ClientStream
	finish  func(error)
	reading atomic.Int32
	asked   int
}

func (h *hasty) RecvMsg(any) error {
	if h.reading.Add(1) > 1 {
		panic("two at once")
	}
	defer h.reading.Add(-1)
	h.asked++
	asked := h.asked
	time.Sleep(10 * time.Millisecond)
	if asked == 1 {
		h.finish(nil)
		return io.EOF
	}
	return errDown
}

func (h *hasty) Header() (metadata.MD, error) {
	time.Sleep(5 * time.Millisecond)
	h.finish(nil)
	return nil, nil
}

func (*hasty) SendMsg(any) error    { return nil }
func (*hasty) CloseSend() error     { return nil }
func (*hasty) Trailer() metadata.MD { return nil }

// gRPC forbids two RecvMsg at once, and Header, which has to ask in its place, heeds
// that. Each attempt is booked once, and both methods come to the one that stands.
func TestG3_HeaderAsksWhileRecvMsgWaits(t *testing.T) {
	for name, first := range map[string]time.Duration{"RecvMsg first": 0, "Header first": 3 * time.Millisecond, "RecvMsg while Header asks": 7 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, messages(1, 0, nil))
				var seen verdicts
				opened := 0
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); seen.note(p) })),
					grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
						if opened++; opened > 1 {
							return streamer(ctx, d, cc, m, opts...)
						}
						h := &hasty{}
						for _, opt := range opts {
							if o, ok := opt.(grpc.OnFinishCallOption); ok {
								h.finish = o.OnFinish // gRPC calls it once; twice does no harm
							}
						}
						return h, nil
					}))
				stream, err := open(t.Context(), cc, serverStream)
				require.NoError(t, err)
				header := make(chan metadata.MD)
				go func() {
					md, err := stream.Header()
					require.NoError(t, err)
					header <- md
				}()
				time.Sleep(first)
				texts, err := readAll(stream)
				require.NoError(t, err)
				require.Len(t, texts, 1)
				require.NotNil(t, <-header)
				require.Equal(t, 2, opened)
				require.Equal(t, []call.Class{call.Unavailable, call.OK}, seen.take())
			})
		})
	}
}

// A client's stream whose server has ended it without its one message did not
// succeed, and Header knows that.
func TestG3_AHeaderOfAClientStreamWithoutItsMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := playFrames(t, memframes.Headers(true, ":status", "200", "content-type", contentType, "grpc-status", "0"))
		var seen verdicts
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p) })))
		stream, err := open(t.Context(), cc, clientStream)
		require.NoError(t, err)
		md, err := stream.Header()
		require.NoError(t, err)
		require.Nil(t, md)
		require.Equal(t, []call.Class{call.ServerFault}, seen.take())
		require.Equal(t, codes.Internal, status.Code(stream.RecvMsg(new(wrapperspb.StringValue))))
		require.Empty(t, seen.take())
	})
}

// Of a unary RPC gRPC loses the status for good. It is not an OK, has a status, and
// is repeated where that is allowed.
func TestG1_AUnaryStatusThatGRPCLoses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*holdfast.Policy)
		second memframes.Answer
		code   codes.Code
		hits   int32
		class  call.Class
	}{
		"refused":                 {single, refused, codes.Unavailable, 2, call.Unavailable},
		"refused, without retry":  {oneAttempt, refused, codes.Unavailable, 2, call.Unavailable},
		"refused, safe":           {readOnly, refused, codes.OK, 3, call.Unavailable},
		"answered":                {single, notFound, codes.Unknown, 2, call.ServerFault},
		"answered, safe":          {readOnly, notFound, codes.OK, 3, call.ServerFault},
		"answered with a message": {single, whole, codes.Unknown, 2, call.ServerFault},
		// The header, the only sign of an answer here, is not collected for a safe call.
		"answered with one, and safe": {readOnly, whole, codes.OK, 3, call.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := playFrames(t, refuseLate, c.second, whole)
				var results []call.Result
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
					c.change(p)
					p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
						results = append(results, r)
						return r
					}
				})), grpc.WithStatsHandler(new(lingering)))
				_, err := invoke(t.Context(), cc)
				require.Equal(t, c.code, status.Code(err), "%v", err)
				if err != nil {
					require.NotErrorIs(t, err, io.EOF)
					_, has := status.FromError(err)
					require.True(t, has)
				}
				require.Equal(t, c.hits, int32(s.Streams()))
				require.Equal(t, c.class, results[0].Class)
				require.False(t, results[0].NotSent)
			})
		})
	}
}

// An interceptor behind the kit that opens no stream and says io.EOF has failed: a
// caller may not be given neither stream nor error.
func TestG1_AnEOFInsteadOfAStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, messages(1, 0, nil))
		var seen verdicts
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p) })),
			grpc.WithChainStreamInterceptor(func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
				return nil, io.EOF
			}))
		_, err := cc.NewStream(t.Context(), serverStream, method)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, []call.Class{call.Unavailable}, seen.take())
	})
}

// early asks for the header before its caller does, on a goroutine of its own.
func early(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, m string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, m, opts...)
	if err == nil {
		go func() {
			time.Sleep(time.Millisecond)
			_, _ = s.Header()
		}()
	}
	return s, err
}

// What gRPC says too soon counts for nothing where nobody reads the stream; what
// has delivered a message and is said to be an OK is one.
func TestG3_AnEndSaidTooSoonThatNobodyReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := playFrames(t, refuseLate, refused)
		var seen verdicts
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { single(p); seen.note(p) })),
			grpc.WithStatsHandler(new(lingering)), grpc.WithChainStreamInterceptor(early))
		ctx, cancel := context.WithCancel(t.Context())
		_, err := open(ctx, cc, serverStream)
		require.NoError(t, err)
		time.Sleep(10 * time.Millisecond)
		cancel()
		synctest.Wait()
		require.Equal(t, []call.Class{call.Canceled}, seen.take())
	})
}

// Without retry no proof is collected until an end is met that may be the client's
// own or the server's word. From then on the two are told apart, and so is what the
// server says in the trailer.
func TestAServersOwnWordsWithoutRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var results []call.Result
		s := play(t, func(ss grpc.ServerStream) error {
			if err := ss.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				return err // the last call's, which has its end before the server says anything
			}
			ss.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", "1500"))
			return status.Error(codes.Internal, "grpc: error while marshaling: in the server")
		})
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			oneAttempt(p)
			p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
				results = append(results, r)
				return r
			}
		})))
		for range 3 {
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Internal, status.Code(err))
		}
		err := cc.Invoke(t.Context(), method, wrapperspb.String("hello"), new(wrapperspb.StringValue), grpc.MaxCallSendMsgSize(1))
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		var classes []call.Class
		for _, r := range results {
			classes = append(classes, r.Class)
		}
		require.Equal(t, []call.Class{call.Permanent, call.ServerFault, call.ServerFault, call.Permanent}, classes)
		require.Equal(t, 1500*time.Millisecond, results[1].RetryAfter)
	})
}
