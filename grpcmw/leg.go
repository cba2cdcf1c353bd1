package grpcmw

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
)

// ReportUpstream is a call option that tells which upstream of a [FailoverConn] an
// RPC was made on: its name, and behind a bar its resource if the list names one. It
// is set by each attempt, so that in the end it names the one that the call ended
// with. On other connections it does nothing.
func ReportUpstream(name *string) grpc.CallOption { return &reportUpstream{name: name} }

type reportUpstream struct {
	grpc.EmptyCallOption
	name *string
}

// insideFailover is the call option of an attempt of a failover: interceptors of the
// same kit that the connection has leave it alone.
type insideFailover struct {
	grpc.EmptyCallOption
	kit *holdfast.Kit
}

// leg is an attempt's way to its upstream.
type leg struct {
	failover *FailoverConn
	upstream *Upstream
	conn     grpc.ClientConnInterface
}

// leg returns the way of the attempt under way, and reports the upstream.
func (f *FailoverConn) leg(c *holdfast.Call, options *callOptions) leg {
	u := &f.ups[c.Upstream()]
	for _, name := range options.upstream {
		if name != nil {
			*name = f.labels[c.Upstream()]
		}
	}
	return leg{f, u, u.Instances[c.Instance()]}
}

// cc returns the connection if it is gRPC's own, else nil.
func (l leg) cc() *grpc.ClientConn {
	cc, _ := l.conn.(*grpc.ClientConn)
	return cc
}

func (l leg) invoke(ctx context.Context, method string, req, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	return l.conn.Invoke(ctx, method, req, reply, opts...)
}

func (l leg) stream(ctx context.Context, desc *grpc.StreamDesc, _ *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return l.conn.NewStream(ctx, desc, method, opts...)
}

// pass returns the call's options with what the attempt needs beside them.
func (l leg) pass(opts []grpc.CallOption) []grpc.CallOption {
	// The slice may be shared: nobody may write behind its end.
	return append(opts[:len(opts):len(opts)], &insideFailover{kit: l.failover.interceptors.kit})
}

// prepares returns what prepares the attempt's metadata: the upstream's function and
// then that of all.
func (l leg) prepares(then prepare) prepare {
	first := l.upstream.Prepare
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(ctx context.Context, method string, attempt int, md metadata.MD) error {
		if err := first(ctx, method, attempt, md); err != nil {
			return err
		}
		return then(ctx, method, attempt, md)
	}
}
