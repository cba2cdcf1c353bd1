package grpcmw_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
)

// lost is a connection all of whose streams end at the first receive. Header waits for
// the gate and panics.
type lost struct {
	grpc.ClientStream
	ctx  context.Context
	gate chan struct{}
	hits *int
}

func (l *lost) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return nil }

func (l *lost) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &lost{ctx: ctx, gate: l.gate, hits: l.hits}, nil
}

func (l *lost) Context() context.Context { return l.ctx }

func (l *lost) SendMsg(any) error { return nil }

func (l *lost) CloseSend() error { return nil }

func (l *lost) RecvMsg(any) error {
	if *l.hits++; *l.hits == 2 {
		close(l.gate)
	}
	return status.Error(codes.Unavailable, "lost")
}

func (l *lost) Header() (metadata.MD, error) { <-l.gate; panic("boom") }

// B1, F6: a panic in one method of a stream ends the call while another one moves it
// along the upstreams. For the race detector.
func TestB1_APanicBesideAWalkOfAStream(t *testing.T) {
	p := holdfast.Policy{
		Retry:   &retry.Policy{MaxAttempts: 200, Backoff: retry.NoWait(), Budget: retry.NoBudget()},
		Breaker: breaker.Off(),
	}
	p.Safety = call.ReadOnly
	p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result { return res }
	k, err := holdfast.New(holdfast.Config{Default: p})
	require.NoError(t, err)
	for range 20 {
		conn := &lost{gate: make(chan struct{}), hits: new(int)}
		f, err := grpcmw.Failover(k, []grpcmw.Upstream{{Conn: conn, Name: "a"}, {Conn: conn, Name: "b"}})
		require.NoError(t, err)
		s, err := open(t.Context(), f, serverStream)
		require.NoError(t, err)
		began, ended := make(chan struct{}), make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			close(began)
			_, _ = s.Header()
		}()
		<-began
		require.Error(t, s.RecvMsg(new(wrapperspb.StringValue)))
		require.Contains(t, []any{"boom", nil}, <-ended)
		require.Zero(t, inUse(k))
	}
}
