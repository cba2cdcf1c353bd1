package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	middlewareretry "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	middlewaretimeout "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	holdcall "github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/timeout"
)

const echo = "/bench.Echo/Echo"

// interceptor makes a contender's interceptors, in the order of a chain.
type interceptor func() []grpc.UnaryClientInterceptor

func holdfastGRPC(p holdfast.Policy) interceptor {
	return func() []grpc.UnaryClientInterceptor {
		return []grpc.UnaryClientInterceptor{grpcmw.UnaryClientInterceptor(newKit(p))}
	}
}

// failsafeGRPC: https://failsafe-go.dev/grpc/
func (s situation) failsafeGRPC() []grpc.UnaryClientInterceptor {
	retries := failsafegrpc.NewRetryPolicyBuilder[*wrapperspb.StringValue]()
	return []grpc.UnaryClientInterceptor{failsafegrpc.NewUnaryClientInterceptor(failsafeStack(retries, s.limit)...)}
}

// middlewareGRPC: https://pkg.go.dev/github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry#example-UnaryClientInterceptor
// It has retries and a timeout only; inside the retries the timeout bounds an attempt.
func (s situation) middlewareGRPC() []grpc.UnaryClientInterceptor {
	return []grpc.UnaryClientInterceptor{
		middlewareretry.UnaryClientInterceptor(middlewareretry.WithMax(3), middlewareretry.WithBackoff(middlewareretry.BackoffExponential(50*time.Millisecond))),
		middlewaretimeout.UnaryClientInterceptor(s.limit),
	}
}

func (s situation) byHandGRPC() []grpc.UnaryClientInterceptor {
	stack := newByHand(s.limit)
	return []grpc.UnaryClientInterceptor{
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return stack.do(ctx, func(ctx context.Context) error { return invoke(ctx, method, req, reply, cc, opts...) })
		},
	}
}

// limitOnly is a call with a deadline of its own and nothing else.
func (s situation) limitOnly() []grpc.UnaryClientInterceptor {
	return []grpc.UnaryClientInterceptor{middlewaretimeout.UnaryClientInterceptor(s.limit)}
}

// chain makes one invoker of a chain of interceptors.
func chain(all []grpc.UnaryClientInterceptor, last grpc.UnaryInvoker) grpc.UnaryInvoker {
	invoke := last
	for i := len(all) - 1; i >= 0; i-- {
		interceptor, next := all[i], invoke
		invoke = func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
			return interceptor(ctx, method, req, reply, cc, next, opts...)
		}
	}
	return invoke
}

func stubInvoker(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	return call()
}

func (s situation) overStubInvoker(name string, role role, make interceptor) contender {
	return contender{name: name, role: role, setup: func() work {
		invoke, ctx := grpc.UnaryInvoker(stubInvoker), s.ctx()
		if make != nil {
			invoke = chain(make(), invoke)
		}
		opts := []grpc.CallOption{grpc.StaticMethod()}
		req, reply := wrapperspb.String("x"), new(wrapperspb.StringValue)
		return again(func(n int) {
			for range n {
				if err := invoke(ctx, echo, req, reply, nil, opts...); err != nil {
					panic(err)
				}
			}
		})
	}}
}

// wire is where a contender's own server listens.
type wire func() (net.Listener, grpc.DialOption, string)

func inMemory() (net.Listener, grpc.DialOption, string) {
	l := memnet.Listen(memnet.Host + ":443")
	return l, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return l.DialContext(ctx, "tcp", address) }),
		"passthrough:///" + memnet.Host
}

func onLoopback() (net.Listener, grpc.DialOption, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return l, grpc.EmptyDialOption{}, l.Addr().String()
}

func overWire(name string, role role, make interceptor, w wire) contender {
	return contender{name: name, role: role, setup: func() work {
		l, dial, target := w()
		s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			m := new(wrapperspb.StringValue)
			if err := stream.RecvMsg(m); err != nil {
				return err
			}
			return stream.SendMsg(m)
		}))
		go func() { _ = s.Serve(l) }() // as long as the process lives
		opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), dial}
		if make != nil {
			opts = append(opts, grpc.WithChainUnaryInterceptor(make()...))
		}
		cc, err := grpc.NewClient(target, opts...)
		if err != nil {
			panic(err)
		}
		req := wrapperspb.String("x")
		return again(func(n int) {
			for range n {
				if err := cc.Invoke(context.Background(), echo, req, new(wrapperspb.StringValue), grpc.StaticMethod()); err != nil {
					panic(err)
				}
			}
		})
	}}
}

func grpcRows() []row {
	unlimited, read := ownLimit.once(), ownLimit.policy()
	unlimited.Timeout, read.Safety = timeout.Off(), holdcall.ReadOnly
	stub := func(name string, g goal, p holdfast.Policy, in situation, limit interceptor) row {
		return row{name: name, goal: g, contenders: []contender{
			clocksAndAdds, in.overStubInvoker("bare", bare, limit), in.overStubInvoker("holdfast", kit, holdfastGRPC(p)),
			in.overStubInvoker("failsafe-go", peer, in.failsafeGRPC), in.overStubInvoker("go-grpc-middleware", peer, in.middlewareGRPC),
			in.overStubInvoker("by hand", peer, in.byHandGRPC),
		}}
	}
	network := func(name string, g goal, p holdfast.Policy, w wire) row {
		return row{name: name, network: true, goal: g, contenders: []contender{
			overWire("bare with a limit", bare, ownLimit.limitOnly, w), overWire("holdfast", kit, holdfastGRPC(p), w),
			overWire("failsafe-go", peer, ownLimit.failsafeGRPC, w), overWire("go-grpc-middleware", peer, ownLimit.middlewareGRPC, w),
			overWire("by hand", peer, ownLimit.byHandGRPC, w),
		}}
	}
	near := func(allocs int) goal {
		return goal{text: fmt.Sprintf("1.03 x bare with a limit, %d allocations", allocs), times: 1.03, allocs: most(float64(allocs))}
	}
	return []row{
		stub("grpc stub, no limit, once", goal{text: "160 ns", plus: 160, pace: 77, allocs: most(0)}, unlimited, ownLimit, nil),
		stub("grpc stub, caller's deadline sooner, once", goal{text: "160 ns", plus: 160, pace: 77, allocs: most(0)}, callerSooner.once(), callerSooner, nil),
		stub("grpc stub, own limit, once", goal{text: "WithTimeout + 150 ns, no allocation more", times: 1, plus: 150, pace: 77, allocs: most(0)}, ownLimit.once(), ownLimit, ownLimit.limitOnly),
		stub("grpc stub, own limit, may be repeated", goal{}, read, ownLimit, ownLimit.limitOnly),
		network("grpc in memory, once", near(1), ownLimit.once(), inMemory),
		network("grpc in memory, may be repeated", near(3), read, inMemory),
		network("grpc loopback, once", near(1), ownLimit.once(), onLoopback),
		network("grpc loopback, may be repeated", near(3), read, onLoopback),
	}
}
