package grpcmw_test

import (
	"context"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// ballast keeps the collector from being what an allocating benchmark measures.
var ballast = make([]byte, 64<<20)

var benchPolicies = map[string]holdfast.Policy{
	"NoLimitOnce":   {Retry: retry.Off(), Timeout: timeout.Off()},
	"NoLimitUnsafe": {Timeout: timeout.Off()},
	"NoLimitRead":   {Timeout: timeout.Off(), Safety: call.ReadOnly},
	"LimitOnce":     {Retry: retry.Off()},
	"LimitUnsafe":   {},
	"LimitRead":     {Safety: call.ReadOnly},
}

func benchKit(b *testing.B, p holdfast.Policy) *holdfast.Kit {
	k, err := holdfast.New(holdfast.Config{Default: p})
	if err != nil {
		b.Fatal(err)
	}
	return k
}

// The whole stack around an invoker that does nothing.
func BenchmarkUnaryStub(b *testing.B) {
	ballast[0] = 1
	stub := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	opts := []grpc.CallOption{grpc.StaticMethod()}
	req, reply := wrapperspb.String("x"), new(wrapperspb.StringValue)
	b.Run("Bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = stub(context.Background(), method, req, reply, nil, opts...)
		}
	})
	b.Run("WithTimeout", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			_ = stub(ctx, method, req, reply, nil, opts...)
			cancel()
		}
	})
	for name, p := range benchPolicies {
		b.Run(name, func(b *testing.B) {
			u := grpcmw.UnaryClientInterceptor(benchKit(b, p))
			b.ReportAllocs()
			for b.Loop() {
				if err := u(context.Background(), method, req, reply, nil, stub, opts...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("CallersDeadlineSoonerOnce", func(b *testing.B) {
		u := grpcmw.UnaryClientInterceptor(benchKit(b, holdfast.Policy{Retry: retry.Off()}))
		ctx, cancel := context.WithTimeout(context.Background(), 9*time.Second)
		defer cancel()
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			_ = u(ctx, method, req, reply, nil, stub, opts...)
		}
	})
}

// Real RPCs over a wire in memory.
func BenchmarkUnaryMemory(b *testing.B) {
	ballast[0] = 1
	s := memgrpc.Serve(b, func(grpc.ServiceRegistrar) {}, grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error { return say("x")(ss) }))
	run := func(b *testing.B, cc *grpc.ClientConn, limit time.Duration) {
		b.ReportAllocs()
		req, reply := wrapperspb.String("x"), new(wrapperspb.StringValue)
		for b.Loop() {
			ctx, cancel := context.Background(), context.CancelFunc(func() {})
			if limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, limit)
			}
			if err := cc.Invoke(ctx, method, req, reply, grpc.StaticMethod()); err != nil {
				b.Fatal(err)
			}
			cancel()
		}
	}
	b.Run("Bare", func(b *testing.B) { run(b, s.Dial(), 0) })
	b.Run("BareWithTimeout", func(b *testing.B) { run(b, s.Dial(), 10*time.Second) })
	for name, p := range benchPolicies {
		b.Run(name, func(b *testing.B) { run(b, s.Dial(grpcmw.DialOptions(benchKit(b, p))...), 0) })
	}
}

// A server stream of ten messages.
func BenchmarkStreamMemory(b *testing.B) {
	ballast[0] = 1
	s := memgrpc.Serve(b, func(grpc.ServiceRegistrar) {}, grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error { return messages(10, 0, nil)(ss) }))
	for name, opts := range map[string][]grpc.DialOption{"Bare": nil, "Kit": grpcmw.DialOptions(benchKit(b, holdfast.Policy{}))} {
		b.Run(name, func(b *testing.B) {
			cc := s.Dial(opts...)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			m := new(wrapperspb.StringValue)
			b.ReportAllocs()
			for b.Loop() {
				stream, err := open(ctx, cc, serverStream)
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					err = stream.RecvMsg(m)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the layers cost in allocations: nothing without a limit of the kit's and
// without retry; one for a limit, before anybody waits for its context as gRPC
// does; where a call may be repeated, two: one holds the mark of R8, the context with
// the limit and the witness of what was sent, and gRPC's way to tell that it is done is
// the other.
func TestAllocations(t *testing.T) {
	stub := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	opts := []grpc.CallOption{grpc.StaticMethod()}
	for name, want := range map[string]float64{
		"NoLimitOnce": 0, "NoLimitUnsafe": 2, "NoLimitRead": 2, "LimitOnce": 1, "LimitUnsafe": 2, "LimitRead": 2,
	} {
		u := grpcmw.UnaryClientInterceptor(newKit(t, benchPolicies[name]))
		got := testing.AllocsPerRun(200, func() { _ = u(context.Background(), method, nil, nil, nil, stub, opts...) })
		require.Equal(t, want, got, name)
	}

	i := grpcmw.StreamClientInterceptor(newKit(t, policy()))
	inner := &fake{}
	streamer := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		return inner, nil
	}
	stream, err := i(context.Background(), serverStream, nil, method, streamer)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = stream.RecvMsg(nil); _ = stream.SendMsg(nil) }), "per message")

	ctx, cancel := context.WithCancel(context.Background()) // as a stream's caller has it; else the collector watches
	defer cancel()
	inner.recv = io.EOF
	whole := testing.AllocsPerRun(200, func() {
		stream, _ := i(ctx, serverStream, nil, method, streamer)
		_ = stream.SendMsg(nil)
		_ = stream.CloseSend()
		_ = stream.RecvMsg(nil)
	})
	require.Equal(t, 5.0, whole, "a write: the call, the two halves of its wrapper, and a context with its cancel")
}

// Over a wire, where gRPC asks for the context and tells what the witness asks, a call
// that may be repeated costs three allocations more than one with a deadline.
func TestAllocationsOverAWire(t *testing.T) {
	s := memgrpc.Serve(t, func(grpc.ServiceRegistrar) {}, grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error { return say("x")(ss) }))
	req, reply := wrapperspb.String("x"), new(wrapperspb.StringValue)
	deadline := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Hour)
	}
	none := func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }
	allocated := func(limit func(context.Context) (context.Context, context.CancelFunc), opts ...grpc.DialOption) float64 {
		cc, least := s.Dial(opts...), math.Inf(1)
		for range 3 { // what the connections do beside the calls only adds
			least = min(least, testing.AllocsPerRun(300, func() {
				ctx, cancel := limit(context.Background())
				defer cancel()
				require.NoError(t, cc.Invoke(ctx, method, req, reply, grpc.StaticMethod()))
			}))
		}
		return least
	}
	bare := allocated(deadline)
	require.LessOrEqual(t, allocated(none, grpcmw.DialOptions(newKit(t, benchPolicies["LimitOnce"]))...)-bare, 1.0)
	require.LessOrEqual(t, allocated(none, grpcmw.DialOptions(newKit(t, benchPolicies["LimitRead"]))...)-bare, 3.0)
}
