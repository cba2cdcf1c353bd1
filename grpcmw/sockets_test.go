package grpcmw_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/timeout"
)

// shop is grpc-go's interop service, as generated code serves it.
type shop struct {
	testpb.UnimplementedTestServiceServer
	hits   atomic.Int32
	silent atomic.Bool
}

func (s *shop) EmptyCall(ctx context.Context, _ *testpb.Empty) (*testpb.Empty, error) {
	if s.hits.Add(1); s.silent.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &testpb.Empty{}, nil
}

func (s *shop) StreamingOutputCall(r *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
	for range r.GetResponseParameters() {
		if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) StreamingInputCall(stream testpb.TestService_StreamingInputCallServer) error {
	n := int32(0)
	for {
		r, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: n})
		}
		if err != nil {
			return err
		}
		n += int32(len(r.GetPayload().GetBody()))
	}
}

// serve serves impl on l until the test ends.
func serve(t *testing.T, l net.Listener, impl testpb.TestServiceServer) {
	s := grpc.NewServer()
	testpb.RegisterTestServiceServer(s, impl)
	t.Cleanup(s.Stop)
	go func() { _ = s.Serve(l) }() // grpc.ErrServerStopped
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

func dial(t *testing.T, address string, p holdfast.Policy) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient(address, append(grpcmw.DialOptions(newKit(t, p)), grpc.WithTransportCredentials(insecureCredentials))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

func TestRealSockets(t *testing.T) {
	impl := &shop{}
	l := listen(t)
	serve(t, l, impl)
	client := testpb.NewTestServiceClient(dial(t, l.Addr().String(), with(func(p *holdfast.Policy) {
		oneAttempt(p)
		p.Timeout = &timeout.Limits{Attempt: 400 * time.Millisecond}
		p.Breaker.Consecutive = 3
	})))

	for range 20 {
		_, err := client.EmptyCall(t.Context(), &testpb.Empty{})
		require.NoError(t, err)
	}
	out, err := client.StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{ResponseParameters: make([]*testpb.ResponseParameters, 7)})
	require.NoError(t, err)
	for range 7 {
		_, err := out.Recv()
		require.NoError(t, err)
	}
	_, err = out.Recv()
	require.Equal(t, io.EOF, err)

	in, err := client.StreamingInputCall(t.Context())
	require.NoError(t, err)
	require.NoError(t, in.Send(&testpb.StreamingInputCallRequest{Payload: &testpb.Payload{Body: make([]byte, 9)}}))
	sum, err := in.CloseAndRecv()
	require.NoError(t, err)
	require.EqualValues(t, 9, sum.GetAggregatedPayloadSize())

	// The server falls silent: three limits, then the circuit answers at once.
	impl.silent.Store(true)
	hits := impl.hits.Load()
	for range 3 {
		_, err := client.EmptyCall(t.Context(), &testpb.Empty{})
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	}
	for range 100 {
		_, err := client.EmptyCall(t.Context(), &testpb.Empty{})
		require.ErrorIs(t, err, breaker.ErrOpen)
	}
	require.Equal(t, hits+3, impl.hits.Load())

	// And recovers: the first call after the cooldown is the probe.
	impl.silent.Store(false)
	require.Eventually(t, func() bool {
		_, err := client.EmptyCall(t.Context(), &testpb.Empty{})
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
}

// Where nobody listens the dial is refused: nothing was sent, so the call of a method of
// which nothing is declared is repeated until the server is back. D038's last line.
func TestRealSocketsARefusedDialIsRepeated(t *testing.T) {
	impl := &shop{}
	l := listen(t)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	client := testpb.NewTestServiceClient(dial(t, address, with(func(p *holdfast.Policy) {
		p.Breaker = breaker.Off()
		p.Timeout = &timeout.Limits{}
		p.Retry.MaxAttempts = 100
	})))
	time.AfterFunc(100*time.Millisecond, func() {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Errorf("the port is gone: %v", err)
			return
		}
		serve(t, l, impl)
	})
	_, err := client.EmptyCall(t.Context(), &testpb.Empty{})
	require.NoError(t, err)
	require.EqualValues(t, 1, impl.hits.Load())
}
