package grpcmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/outlier"
)

// A generated client takes it for a connection, for unary RPCs and streams.
func TestFailoverIsAConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, func(s grpc.ServerStream) error {
			if err := s.RecvMsg(new(healthpb.HealthCheckRequest)); err != nil {
				return err
			}
			return s.SendMsg(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING})
		})
		client := healthpb.NewHealthClient(over(t, newKit(t, with(readOnly)), a, b))
		reply, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, reply.GetStatus())
		watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		reply, err = watch.Recv()
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, reply.GetStatus())
		_, err = watch.Recv()
		require.Error(t, err)
		require.Equal(t, []int{2, 2}, hitsOf(a, b))
	})
}

// Each upstream may have metadata of its own; the caller's context does not change.
func TestPrepareSetsAnUpstreamsMetadata(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := play(t, fail(codes.Unavailable)), play(t, say("B"))
		token := func(text string) func(context.Context, string, int, metadata.MD) error {
			return func(_ context.Context, _ string, n int, md metadata.MD) error {
				md.Set("authorization", text)
				return nil
			}
		}
		order := ""
		f, err := grpcmw.Failover(newKit(t, with(readOnly)), []grpcmw.Upstream{
			{Conn: a.Dial(), Name: "a", Prepare: token("for a")}, {Conn: b.Dial(), Name: "b", Prepare: token("for b")},
		}, grpcmw.WithAttemptHook(func(_ context.Context, _ string, _ int, md metadata.MD) error {
			order += strings.Join(md.Get("authorization"), ",") + ";"
			return nil
		}))
		require.NoError(t, err)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "the caller's")
		_, _, err = ask(ctx, f)
		require.NoError(t, err)
		require.Equal(t, []string{"for a"}, a.incoming[0].Get("authorization"))
		require.Equal(t, []string{"for b"}, b.incoming[0].Get("authorization"))
		require.Equal(t, "for a;for b;", order, "the hook signs what is sent")
		md, _ := metadata.FromOutgoingContext(ctx)
		require.Equal(t, []string{"the caller's"}, md.Get("authorization"))

		f, err = grpcmw.Failover(newKit(t, with(readOnly)), []grpcmw.Upstream{
			{Conn: a.Dial(), Name: "a", Prepare: func(context.Context, string, int, metadata.MD) error { return errors.New("no token") }},
			{Conn: b.Dial(), Name: "b"},
		})
		require.NoError(t, err)
		_, _, err = ask(t.Context(), f)
		require.ErrorContains(t, err, "no token")
		require.Equal(t, []int{1, 1}, hitsOf(a, b))
	})
}

// What the caller's targets show is the last attempt's.
func TestFailoverFillsTheCallersTargets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		from := func(name string, then hit) hit {
			return func(s grpc.ServerStream) error {
				s.SetTrailer(metadata.Pairs("from", name))
				return then(s)
			}
		}
		a, b := play(t, from("a", fail(codes.Unavailable))), play(t, from("b", say("B")))
		f := over(t, newKit(t, with(readOnly)), a, b)
		var trailer metadata.MD
		ends := 0
		_, _, err := ask(t.Context(), f, grpc.Trailer(&trailer), grpc.OnFinish(func(error) { ends++ }))
		require.NoError(t, err)
		require.Equal(t, []string{"b"}, trailer.Get("from"))
		require.Equal(t, 1, ends)
	})
}

func TestBadUpstreamsAreRefused(t *testing.T) {
	cc, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer cc.Close()
	k := newKit(t, policy())
	var none *grpc.ClientConn
	for text, ups := range map[string][]grpcmw.Upstream{
		"Upstreams: there is none":                                        nil,
		"Upstreams[0].Conn: is missing":                                   {{Name: "a"}},
		"Upstreams[1].Conn: is missing":                                   {{Conn: cc}, {Conn: none}},
		"Upstreams[0].Conn: is set beside":                                {{Conn: cc, Instances: []grpc.ClientConnInterface{cc}}},
		"Upstreams[0].Instances[1]: is nil":                               {{Instances: []grpc.ClientConnInterface{cc, nil}}},
		"Upstreams[0].Instances[0]: is nil":                               {{Instances: []grpc.ClientConnInterface{none}}},
		"Upstreams[0].Name: is missing, and the connection has no target": {{Conn: struct{ grpc.ClientConnInterface }{}}},
		"Upstreams[0].Outlier.Time = -1s":                                 {{Conn: cc, Outlier: outlier.Config{Time: -time.Second}}},
		"Upstreams[1] = passthrough:///x: is the same":                    {{Conn: cc}, {Conn: cc}},
	} {
		_, err := grpcmw.Failover(k, ups)
		require.ErrorContains(t, err, text)
	}
	_, err = grpcmw.Failover(nil, []grpcmw.Upstream{{Conn: cc}})
	require.ErrorContains(t, err, "the kit is nil")
	_, err = grpcmw.Failover(k, []grpcmw.Upstream{{Conn: cc, Resource: "m1"}, {Conn: cc, Resource: "m2"}})
	require.NoError(t, err)
	//lint:ignore SA1012 A nil context is what is tested.
	require.Error(t, must(t, k, cc).Invoke(nil, method, nil, nil))
	e, err := k.Explain(method)
	require.NoError(t, err)
	require.Contains(t, e.String(), "failover: passthrough:///x|m1, passthrough:///x|m2; ")
}

func must(t *testing.T, k *holdfast.Kit, cc *grpc.ClientConn) *grpcmw.FailoverConn {
	t.Helper()
	f, err := grpcmw.Failover(k, []grpcmw.Upstream{{Conn: cc}})
	require.NoError(t, err)
	return f
}
