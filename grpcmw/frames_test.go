package grpcmw_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memnet/memframes"
	"github.com/holdfast-go/holdfast/timeout"
)

// frames is a server of bare HTTP/2 frames, for what no well-behaved gRPC server
// does.
type frames struct{ *memframes.Server }

// playFrames starts a server whose streams are answered at their headers.
func playFrames(t *testing.T, answers ...memframes.Answer) *frames {
	var steps []memframes.Step
	for _, answer := range answers {
		steps = append(steps, memframes.Step{Answer: answer})
	}
	return &frames{memframes.Serve(t, "443", steps...)}
}

func (s *frames) connect(t *testing.T, k *holdfast.Kit, opts ...grpc.DialOption) *grpc.ClientConn {
	opts = append(append(grpcmw.DialOptions(k), opts...),
		grpc.WithTransportCredentials(insecureCredentials),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return s.Wire.DialContext(ctx, "tcp", address)
		}))
	cc, err := grpc.NewClient("passthrough:///"+memnet.Host, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

const contentType = "application/grpc"

var (
	refused = memframes.Reset(http2.ErrCodeRefusedStream)

	// goAway closes a connection, no stream of which was processed.
	goAway = memframes.All(memframes.GoAway(http2.ErrCodeNo), memframes.Close)

	notFound = memframes.Headers(true, ":status", "200", "content-type", contentType, "grpc-status", strconv.Itoa(int(codes.NotFound)), "grpc-message", "here")

	// whole sends headers, an empty message and an OK.
	whole = memframes.All(
		memframes.Headers(false, ":status", "200", "content-type", contentType, "which", "whole"),
		func(f *http2.Framer, stream uint32) error { return f.WriteData(stream, false, make([]byte, 5)) },
		memframes.Headers(true, "grpc-status", "0"),
	)
)

// What gRPC does by itself with a stream that the server has not processed: it is
// sent once more. If that is not processed either, because the connection was being
// closed again, any method's call is repeated. A stream refused twice counts as
// sent: only a call that may be repeated is, so that each of its attempts is two
// streams at most.
func TestR2_AStreamNotProcessedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		refuse  memframes.Answer
		change  func(*holdfast.Policy)
		notSent bool
		code    codes.Code
		hits    int32
		results int
	}{
		"GOAWAY, unsafe":        {goAway, single, true, codes.NotFound, 3, 2},
		"RST_STREAM, unsafe":    {refused, single, false, codes.Unavailable, 2, 1},
		"RST_STREAM, read-only": {refused, readOnly, false, codes.NotFound, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var results []call.Result
				// Once the request is there, for of a stream that ends sooner gRPC may lose the reason.
				s := &frames{memframes.Serve(t, "443", memframes.Step{Answer: c.refuse, Late: true},
					memframes.Step{Answer: c.refuse, Late: true}, memframes.Step{Answer: notFound, Late: true})}
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
					c.change(p)
					p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
						results = append(results, r)
						return r
					}
				})))
				_, err := invoke(t.Context(), cc)
				require.Equal(t, c.code, status.Code(err), "%v", err)
				require.Equal(t, c.hits, int32(s.Streams()))
				require.Len(t, results, c.results)
				require.Equal(t, c.notSent, results[0].NotSent)
				require.Equal(t, call.Unavailable, results[0].Class)
			})
		})
	}
}

// A server that refuses for ever is asked twice for each attempt of the policy's.
func TestR1_AServerThatRefusesForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := playFrames(t, refused)
		cc := s.connect(t, newKit(t, with(readOnly)))
		_, err := invoke(t.Context(), cc)
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		require.EqualValues(t, 2*3, int32(s.Streams()))
	})
}

// What resets and proxies make of a call. ReadOnly, so that a class that is
// repeated is seen to be.
func TestClassesOfResetsAndOfProxies(t *testing.T) {
	html := func(code string) memframes.Answer {
		return memframes.Headers(true, ":status", code, "content-type", "text/html")
	}
	for name, c := range map[string]struct {
		step  memframes.Answer
		code  codes.Code
		class call.Class
		hits  int32
	}{
		"RST CANCEL":            {memframes.Reset(http2.ErrCodeCancel), codes.Canceled, call.ServerFault, 1},
		"RST NO_ERROR":          {memframes.Reset(http2.ErrCodeNo), codes.Internal, call.ServerFault, 3},
		"RST INTERNAL_ERROR":    {memframes.Reset(http2.ErrCodeInternal), codes.Internal, call.ServerFault, 3},
		"RST ENHANCE_YOUR_CALM": {memframes.Reset(http2.ErrCodeEnhanceYourCalm), codes.ResourceExhausted, call.Throttled, 3},
		"RST INADEQUATE":        {memframes.Reset(http2.ErrCodeInadequateSecurity), codes.PermissionDenied, call.ClientFault, 1},
		"502 in HTML":           {html("502"), codes.Unavailable, call.Unavailable, 3},
		"429 in HTML":           {html("429"), codes.Unavailable, call.Unavailable, 3},
		"404 in HTML":           {html("404"), codes.Unimplemented, call.ClientFault, 1},
		"connection cut":        {memframes.Close, codes.Unavailable, call.Unavailable, 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var seen verdicts
				s := playFrames(t, c.step)
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); seen.note(p) })))
				_, err := invoke(t.Context(), cc)
				require.Equal(t, c.code, status.Code(err), "%v", err)
				require.Equal(t, c.hits, int32(s.Streams()))
				require.Equal(t, slices.Repeat([]call.Class{c.class}, int(c.hits)), seen.take())
			})
		})
	}
}

// A server whose timer fires a moment before ours resets the stream. Who set the
// deadline is told by the clock here.
func TestT2_TheServersTimerMayBeFirst(t *testing.T) {
	for name, timeoutOf := range map[string]time.Duration{"the caller's": 50 * time.Millisecond, "the kit's": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				early := min(timeoutOf, 100*time.Millisecond) - time.Millisecond
				s := playFrames(t, func(f *http2.Framer, stream uint32) error {
					time.Sleep(early)
					return memframes.Headers(true, ":status", "200", "content-type", contentType, "grpc-status", "4", "grpc-message", "too late")(f, stream)
				})
				cc := s.connect(t, newKit(t, with(oneAttempt)))
				ctx, cancel := context.WithTimeout(t.Context(), timeoutOf)
				defer cancel()
				_, err := invoke(ctx, cc)
				require.Equal(t, codes.DeadlineExceeded, status.Code(err))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, name == "the kit's", errors.Is(err, timeout.ErrExceeded))
			})
		})
	}
}
