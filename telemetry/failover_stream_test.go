package telemetry_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
	"github.com/holdfast-go/holdfast/telemetry"
)

// D077, D078: a stream that has moved on to another upstream has a span for each hop. At
// io.EOF they are well; and they end too if nobody reads any more.
func TestD077_D078_TheSpansOfAStreamThatMovedOn(t *testing.T) {
	const messages = 10
	for name, c := range map[string]struct {
		read   func(t *testing.T, s grpc.ClientStream, cancel func())
		result string
	}{
		"to io.EOF": {func(t *testing.T, s grpc.ClientStream, _ func()) {
			for range messages {
				require.NoError(t, s.RecvMsg(new(emptypb.Empty)))
			}
			require.Equal(t, io.EOF, s.RecvMsg(new(emptypb.Empty)))
		}, "ok"},
		"one message": {func(t *testing.T, s grpc.ClientStream, cancel func()) {
			require.NoError(t, s.RecvMsg(new(emptypb.Empty)))
			cancel() // and the stream is not touched any more
		}, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				serve := func(n int, end error) *grpc.ClientConn {
					handler := func(_ any, s grpc.ServerStream) error {
						for range n {
							if err := s.SendMsg(new(emptypb.Empty)); err != nil {
								return err
							}
							time.Sleep(10 * time.Millisecond)
						}
						return end
					}
					return memgrpc.Serve(t, func(grpc.ServiceRegistrar) {}, grpc.UnknownServiceHandler(handler)).Dial()
				}
				p := quick()
				p.Safety = call.ReadOnly
				k := newKit(t, "shop", p)
				r := traced(t, k, telemetry.Traces{})
				f, err := grpcmw.Failover(k, []grpcmw.Upstream{
					{Name: "a", Conn: serve(0, status.Error(grpccodes.Unavailable, "down"))}, {Name: "b", Conn: serve(messages, nil)},
				})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, err := f.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/shop.v1.Catalog/List")
				require.NoError(t, err)
				require.NoError(t, s.SendMsg(new(emptypb.Empty)))
				require.NoError(t, s.CloseSend())
				c.read(t, s, cancel)
				time.Sleep(100 * time.Millisecond)

				calls, hops := r.of(trace.SpanKindInternal), r.of(trace.SpanKindClient)
				require.Len(t, calls, 1)
				require.Equal(t, c.result, attr(calls[0], "holdfast.result"))
				require.Equal(t, codes.Unset, calls[0].Status().Code)
				require.Len(t, hops, 2)
				require.Equal(t, codes.Error, hops[0].Status().Code)
				require.Equal(t, "unavailable", attr(hops[0], "error.type"))
				require.Equal(t, codes.Unset, hops[1].Status().Code)
			})
		})
	}
}
