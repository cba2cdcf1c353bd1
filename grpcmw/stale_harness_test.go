package grpcmw_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/grpcmw"
)

const (
	readMethod  = "/test.Service/Read"
	writeMethod = "/test.Service/Write"
)

// origin is a server that can be down: it answers Unavailable then.
type origin struct {
	*script
	kit  *holdfast.Kit
	cc   *grpc.ClientConn
	down atomic.Bool
	mu   sync.Mutex
	told []holdfast.Fallback
}

// staleOrigin starts a server that answers as told, and a connection to it that
// keeps the replies of readMethod.
func staleOrigin(t *testing.T, st fallback.Stale, answer hit, opts ...grpcmw.Option) *origin {
	t.Helper()
	o := &origin{}
	if st.Store == nil {
		st.Store = newStore(t)
	}
	p := with(oneAttempt)
	p.Breaker = &breaker.Config{Consecutive: 1000} // it opens when a test says so
	p.Fallback = &fallback.Policy{Stale: &st}
	var err error
	o.kit, err = holdfast.New(holdfast.Config{
		Default: p,
		Methods: map[string]holdfast.Policy{readMethod: {Safety: call.ReadOnly}},
		Hooks:   holdfast.Hooks{Fallback: o.tell},
	})
	require.NoError(t, err)
	o.script = play(t, func(s grpc.ServerStream) error {
		if o.down.Load() {
			return status.Error(codes.Unavailable, "down")
		}
		return answer(s)
	})
	o.cc = o.Dial(grpcmw.DialOptions(o.kit, opts...)...)
	return o
}

func (o *origin) tell(_ context.Context, f holdfast.Fallback) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, f)
}

func newStore(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.New(16 << 20)
	require.NoError(t, err)
	return store
}

func forAll() fallback.Stale { return fallback.Stale{Identity: fallback.SharedByAll} }

func byUser() fallback.Stale {
	return fallback.Stale{Identity: func(_ context.Context, r fallback.Request) string { return r.Get("Authorization") }}
}

// parrot answers with the request and the caller's authorization.
func parrot(s grpc.ServerStream) error {
	m := new(wrapperspb.StringValue)
	if err := s.RecvMsg(m); err != nil {
		return err
	}
	md, _ := metadata.FromIncomingContext(s.Context())
	return s.SendMsg(wrapperspb.String(m.Value + strings.Join(md["authorization"], "")))
}

func as(ctx context.Context, user string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", user)
}

// call makes an RPC and returns the reply and the header.
func (o *origin) call(ctx context.Context, name, text string, opts ...grpc.CallOption) (string, metadata.MD, error) {
	var header metadata.MD
	reply := new(wrapperspb.StringValue)
	err := o.cc.Invoke(ctx, name, wrapperspb.String(text), reply, append(opts, grpc.Header(&header))...)
	return reply.GetValue(), header, err
}

func isStale(md metadata.MD) bool {
	return strings.HasPrefix(strings.Join(md["cache-status"], ""), "holdfast; hit")
}

// requireDown requires that the server's own error came back, and nothing else.
func requireDown(t *testing.T, got string, err error) {
	t.Helper()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, "down", status.Convert(err).Message())
	require.Empty(t, got)
}

func withHeader(key, value string) hit {
	return func(s grpc.ServerStream) error {
		_ = s.SetHeader(metadata.Pairs(key, value))
		return parrot(s)
	}
}
