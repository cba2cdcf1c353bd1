package grpcmw_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// A stream's methods may be called by several goroutines while it is opened again,
// as gRPC allows it: one that receives, one that sends, others that look.
func TestG3_MethodsMayBeCalledTogether(t *testing.T) {
	s := play(t, func(ss grpc.ServerStream) error {
		if rand.IntN(2) == 0 {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
			return errDown
		}
		return messages(3, 0, nil)(ss)
	})
	cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
		readOnly(p)
		p.Bulkhead = &bulkhead.Config{Limit: 8, Queue: 1000}
		p.Breaker = breaker.Off()
		p.Timeout = &timeout.Limits{FirstMessage: time.Second}
		p.Retry = &retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 100 * time.Microsecond}, Budget: retry.NoBudget()}
	})))
	var clean, failed atomic.Int32
	var streams sync.WaitGroup
	for range 300 {
		streams.Go(func() {
			stream, err := cc.NewStream(t.Context(), bidiStream, method)
			if err != nil {
				failed.Add(1)
				return
			}
			var others sync.WaitGroup
			others.Go(func() { _, _ = stream.Header() })
			others.Go(func() { _ = stream.Context().Err() })
			others.Go(func() {
				time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
				if rand.IntN(2) == 0 {
					_ = stream.SendMsg(wrapperspb.String("sent"))
				}
				_ = stream.CloseSend()
			})
			texts, err := readAll(stream)
			switch {
			case err != nil && status.Code(err) == codes.Unavailable && len(texts) == 0:
				failed.Add(1)
			case err == nil && len(texts) == 3 && texts[0] == "a" && texts[2] == "c":
				clean.Add(1)
			default:
				t.Errorf("%q, %v", texts, err)
			}
			others.Wait()
			_ = stream.Trailer()
		})
	}
	streams.Wait()
	t.Logf("%d clean, %d failed, %d attempts", clean.Load(), failed.Load(), s.hitCount())
	require.Greater(t, clean.Load(), int32(185), "one attempt alone would be clean half the time: 150, give or take 35")
	require.Eventually(t, func() bool { return s.runningCount() == 0 }, 10*time.Second, time.Millisecond)
}

// An attempt whose stream does not take again what the caller has sent has failed
// like any other.
func TestG3_ARepeatThatTakesNoRequest(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code codes.Code
		hits int
	}{
		"for now":  {errDown, codes.OK, 3},
		"for good": {status.Error(codes.InvalidArgument, "no"), codes.InvalidArgument, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				opened := 0
				i := grpcmw.StreamClientInterceptor(newKit(t, with(func(p *holdfast.Policy) { readOnly(p); single(p) })))
				stream, err := i(t.Context(), serverStream, nil, method, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
					switch opened++; opened {
					case 1:
						return &fake{ctx: ctx, recv: errDown}, nil
					case 2:
						return &deaf{fake{ctx: ctx}, c.err}, nil
					}
					return &fake{ctx: ctx}, nil
				})
				require.NoError(t, err)
				require.NoError(t, stream.SendMsg(nil))
				require.Equal(t, c.code, status.Code(stream.RecvMsg(nil)))
				require.Equal(t, c.hits, opened)
			})
		})
	}
}

// deaf is a stream that takes no message.
type deaf struct {
	fake
	err error
}

func (d *deaf) SendMsg(any) error { return d.err }

// Once a stream is settled its request is no longer kept.
func TestG3_ASettledStreamLetsGoOfItsRequest(t *testing.T) {
	i := grpcmw.StreamClientInterceptor(newKit(t, with(readOnly)))
	stream, err := i(t.Context(), serverStream, nil, method, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		return &fake{ctx: ctx}, nil
	})
	require.NoError(t, err)
	var gone atomic.Bool
	func() {
		request := &wrapperspb.StringValue{Value: "a large one"}
		runtime.AddCleanup(request, func(int) { gone.Store(true) }, 0)
		require.NoError(t, stream.SendMsg(request))
	}()
	for range 5 {
		runtime.GC()
	}
	require.False(t, gone.Load(), "a repeat may need it")
	require.NoError(t, stream.RecvMsg(nil))
	collectUntil(t, gone.Load)
	runtime.KeepAlive(stream)
}

// The caller's end during the back-off is the end of the call, in time.
func TestG3_ACallersDeadlineEndsTheRepeats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, silent)
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			single(p)
			p.Breaker = breaker.Off()
			p.Retry.MaxAttempts = 100
			p.Timeout.FirstMessage = 50 * time.Millisecond
		})))
		ctx, cancel := context.WithTimeout(t.Context(), 330*time.Millisecond)
		defer cancel()
		begin := time.Now()
		stream, err := open(ctx, cc, serverStream)
		require.NoError(t, err)
		_, err = readAll(stream)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.LessOrEqual(t, time.Since(begin), 330*time.Millisecond)
		synctest.Wait()
		require.Zero(t, s.runningCount())
		require.Equal(t, s.hitCount(), s.canceled)
		other, err := open(t.Context(), cc, bidiStream)
		require.NoError(t, err)
		runtime.KeepAlive(other)
	})
}

// Over real sockets: the server goes away before its first message and comes back
// at once; the caller sees one clean sequence.
func TestD079_OverRealSockets(t *testing.T) {
	l := listen(t)
	address := l.Addr().String()
	asked := make(chan struct{})
	first := grpc.NewServer()
	testpb.RegisterTestServiceServer(first, &stuck{asked: asked})
	go func() { _ = first.Serve(l) }() // grpc.ErrServerStopped

	p := with(func(p *holdfast.Policy) {
		readOnly(p)
		p.Timeout = &timeout.Limits{}
		p.Retry.MaxAttempts = 50
	})
	p.Breaker = breaker.Off()
	client := testpb.NewTestServiceClient(dial(t, address, p))
	stream, err := client.StreamingOutputCall(t.Context(), outputRequest(1, 2, 3))
	require.NoError(t, err)
	go func() {
		<-asked
		first.Stop()
		again, err := net.Listen("tcp", address)
		if err != nil {
			t.Errorf("the port is gone: %v", err)
			return
		}
		serve(t, again, echo{})
	}()
	for size := 1; size <= 3; size++ {
		m, err := stream.Recv()
		require.NoError(t, err)
		require.Len(t, m.GetPayload().GetBody(), size)
	}
}

// stuck never answers a stream.
type stuck struct {
	testpb.UnimplementedTestServiceServer
	asked chan struct{}
}

func (s *stuck) StreamingOutputCall(_ *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
	close(s.asked)
	<-stream.Context().Done()
	return errors.New("stopped")
}
