package grpcmw_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// frames is a server of bare HTTP/2 frames, for what no well-behaved gRPC server
// does. Each new stream is answered by the next step, the last one for ever.
type frames struct {
	wire  *memnet.Listener
	hits  atomic.Int32
	steps []func(f *http2.Framer, stream uint32) error
}

func playFrames(t *testing.T, steps ...func(f *http2.Framer, stream uint32) error) *frames {
	s := &frames{wire: memnet.Listen(memnet.Host + ":443"), steps: steps}
	go func() {
		for {
			c, err := s.wire.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	t.Cleanup(func() {
		_ = s.wire.Close()
		s.wire.Reset()
		synctest.Wait()
	})
	return s
}

func (s *frames) serve(c net.Conn) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	if f.WriteSettings() != nil {
		return
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			step := s.steps[min(int(s.hits.Add(1)), len(s.steps))-1]
			err = step(f, frame.StreamID)
		}
		if err != nil {
			return
		}
	}
}

func (s *frames) connect(t *testing.T, k *holdfast.Kit, opts ...grpc.DialOption) *grpc.ClientConn {
	opts = append(append(grpcmw.DialOptions(k), opts...),
		grpc.WithTransportCredentials(insecureCredentials),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return s.wire.DialContext(ctx, "tcp", address)
		}))
	cc, err := grpc.NewClient("passthrough:///"+memnet.Host, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

func reset(code http2.ErrCode) func(*http2.Framer, uint32) error {
	return func(f *http2.Framer, stream uint32) error { return f.WriteRSTStream(stream, code) }
}

// answerWith sends headers that end the stream.
func answerWith(fields ...string) func(*http2.Framer, uint32) error {
	return headers(true, fields...)
}

func headers(end bool, fields ...string) func(*http2.Framer, uint32) error {
	return func(f *http2.Framer, stream uint32) error {
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for i := 0; i < len(fields); i += 2 {
			if err := e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
				return err
			}
		}
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
	}
}

// whole sends headers, an empty message and an OK.
func whole(f *http2.Framer, stream uint32) error {
	return errors.Join(
		headers(false, ":status", "200", "content-type", "application/grpc", "which", "whole")(f, stream),
		f.WriteData(stream, false, make([]byte, 5)),
		headers(true, "grpc-status", "0")(f, stream),
	)
}

func goAway(f *http2.Framer, _ uint32) error {
	if err := f.WriteGoAway(0, http2.ErrCodeNo, nil); err != nil {
		return err
	}
	return io.EOF
}

var notFound = answerWith(":status", "200", "content-type", "application/grpc", "grpc-status", strconv.Itoa(int(codes.NotFound)), "grpc-message", "here")

// What gRPC does by itself with a stream that the server has not processed: it is
// sent once more. If that is not processed either, because the connection was being
// closed again, any method's call is repeated. A stream refused twice counts as
// sent: only a call that may be repeated is, so that each of its attempts is two
// streams at most.
func TestR2_AStreamNotProcessedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		refuse  func(*http2.Framer, uint32) error
		change  func(*holdfast.Policy)
		notSent bool
		code    codes.Code
		hits    int32
		results int
	}{
		"GOAWAY, unsafe":        {goAway, single, true, codes.NotFound, 3, 2},
		"RST_STREAM, unsafe":    {reset(http2.ErrCodeRefusedStream), single, false, codes.Unavailable, 2, 1},
		"RST_STREAM, read-only": {reset(http2.ErrCodeRefusedStream), readOnly, false, codes.NotFound, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var results []call.Result
				s := playFrames(t, c.refuse, c.refuse, notFound)
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
					c.change(p)
					p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
						results = append(results, r)
						return r
					}
				})))
				_, err := invoke(t.Context(), cc)
				require.Equal(t, c.code, status.Code(err), "%v", err)
				require.Equal(t, c.hits, s.hits.Load())
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
		s := playFrames(t, reset(http2.ErrCodeRefusedStream))
		cc := s.connect(t, newKit(t, with(readOnly)))
		_, err := invoke(t.Context(), cc)
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		require.EqualValues(t, 2*3, s.hits.Load())
	})
}

// What resets and proxies make of a call. ReadOnly, so that a class that is
// repeated is seen to be.
func TestClassesOfResetsAndOfProxies(t *testing.T) {
	html := func(code string) func(*http2.Framer, uint32) error {
		return answerWith(":status", code, "content-type", "text/html")
	}
	for name, c := range map[string]struct {
		step  func(*http2.Framer, uint32) error
		code  codes.Code
		class call.Class
		hits  int32
	}{
		"RST CANCEL":            {reset(http2.ErrCodeCancel), codes.Canceled, call.ServerFault, 1},
		"RST NO_ERROR":          {reset(http2.ErrCodeNo), codes.Internal, call.ServerFault, 3},
		"RST INTERNAL_ERROR":    {reset(http2.ErrCodeInternal), codes.Internal, call.ServerFault, 3},
		"RST ENHANCE_YOUR_CALM": {reset(http2.ErrCodeEnhanceYourCalm), codes.ResourceExhausted, call.Throttled, 3},
		"RST INADEQUATE":        {reset(http2.ErrCodeInadequateSecurity), codes.PermissionDenied, call.ClientFault, 1},
		"502 in HTML":           {html("502"), codes.Unavailable, call.Unavailable, 3},
		"429 in HTML":           {html("429"), codes.Unavailable, call.Unavailable, 3},
		"404 in HTML":           {html("404"), codes.Unimplemented, call.ClientFault, 1},
		"connection cut":        {func(*http2.Framer, uint32) error { return io.EOF }, codes.Unavailable, call.Unavailable, 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var seen verdicts
				s := playFrames(t, c.step)
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); seen.note(p) })))
				_, err := invoke(t.Context(), cc)
				require.Equal(t, c.code, status.Code(err), "%v", err)
				require.Equal(t, c.hits, s.hits.Load())
				for _, class := range seen.take() {
					require.Equal(t, c.class, class)
				}
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
					return answerWith(":status", "200", "content-type", "application/grpc", "grpc-status", "4", "grpc-message", "too late")(f, stream)
				})
				cc := s.connect(t, newKit(t, with(oneAttempt)))
				ctx, cancel := context.WithTimeout(t.Context(), timeoutOf)
				defer cancel()
				_, err := invoke(ctx, cc)
				require.Equal(t, codes.DeadlineExceeded, status.Code(err))
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		})
	}
}
