package interop_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/orca"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// The functions of package interop end the process when a check of theirs fails,
// through the logger. This one panics before that comes to pass.
type panicking struct{ grpclog.LoggerV2 }

type failedCheck string

func (panicking) Fatal(args ...any)                 { panic(failedCheck(fmt.Sprint(args...))) }
func (panicking) Fatalln(args ...any)               { panic(failedCheck(fmt.Sprintln(args...))) }
func (panicking) Fatalf(format string, args ...any) { panic(failedCheck(fmt.Sprintf(format, args...))) }

func TestMain(m *testing.M) {
	grpclog.SetLoggerV2(panicking{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)})
	os.Exit(m.Run())
}

// check runs a case and returns what it complained of, "" if it passed.
func check(run func()) (complaint string) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case failedCheck:
			complaint = string(value)
		default:
			panic(value)
		}
	}()
	run()
	return ""
}

// cases are those of gRPC's interop client that need neither accounts in a cloud
// nor xDS. orca_oob is not among them: the least interval of its reports, 30 s, can be
// lifted by gRPC's own packages only.
var cases = map[string]func(context.Context, *grpc.ClientConn){
	"empty_unary":                 withClient(interop.DoEmptyUnaryCall),
	"large_unary":                 withClient(interop.DoLargeUnaryCall),
	"client_streaming":            withClient(interop.DoClientStreaming),
	"server_streaming":            withClient(interop.DoServerStreaming),
	"ping_pong":                   withClient(interop.DoPingPong),
	"empty_stream":                withClient(interop.DoEmptyStream),
	"timeout_on_sleeping_server":  withClient(interop.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          withClient(interop.DoCancelAfterBegin),
	"cancel_after_first_response": withClient(interop.DoCancelAfterFirstResponse),
	"status_code_and_message":     withClient(interop.DoStatusCodeAndMessage),
	"special_status_message":      withClient(interop.DoSpecialStatusMessage),
	"custom_metadata":             withClient(interop.DoCustomMetadata),
	"unimplemented_method":        interop.DoUnimplementedMethod,
	"unimplemented_service": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testpb.NewUnimplementedServiceClient(cc))
	},
	"orca_per_rpc": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoORCAPerRPCTest(ctx, testpb.NewTestServiceClient(cc))
	},
	"rpc_soak": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoSoakTest(ctx, interop.SoakTestConfig{
			RequestSize: 271828, ResponseSize: 314159, PerIterationMaxAcceptableLatency: 10 * time.Second,
			OverallTimeout: time.Minute, ServerAddr: cc.Target(), NumWorkers: 2, Iterations: 6,
			ChannelForTest: func() (*grpc.ClientConn, func()) { return cc, func() {} },
		})
	},
}

func withClient(run func(context.Context, testpb.TestServiceClient, ...grpc.CallOption)) func(context.Context, *grpc.ClientConn) {
	return func(ctx context.Context, cc *grpc.ClientConn) { run(ctx, testpb.NewTestServiceClient(cc)) }
}

// setups are connections to run the cases over; "bare" is the measure.
var setups = map[string]func(*testing.T) []grpc.DialOption{
	"bare":          func(*testing.T) []grpc.DialOption { return nil },
	"standard":      func(t *testing.T) []grpc.DialOption { return kit(t, holdfast.Policy{}) },
	"without retry": func(t *testing.T) []grpc.DialOption { return kit(t, holdfast.Policy{Retry: retry.Off()}) },
	"repeats and limits": func(t *testing.T) []grpc.DialOption {
		return kit(t, holdfast.Policy{
			Safety:  call.ReadOnly,
			Timeout: &timeout.Limits{Attempt: 10 * time.Second, FirstMessage: 10 * time.Second, Idle: 10 * time.Second},
		})
	},
	"hedges": func(t *testing.T) []grpc.DialOption {
		return kit(t, holdfast.Policy{Safety: call.ReadOnly, Retry: &retry.Policy{Hedge: retry.Hedge{Delay: time.Microsecond}}})
	},
	"behind logging": func(t *testing.T) []grpc.DialOption {
		return append(new(logbook).options(), kit(t, holdfast.Policy{})...)
	},
	"before logging": func(t *testing.T) []grpc.DialOption {
		return append(kit(t, holdfast.Policy{}), new(logbook).options()...)
	},
	"with traces": func(t *testing.T) []grpc.DialOption {
		provider, _ := tracing(t)
		return append(kit(t, holdfast.Policy{Safety: call.ReadOnly}), grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(provider))))
	},
	"behind another kit": func(t *testing.T) []grpc.DialOption {
		return append(kit(t, holdfast.Policy{}), kit(t, holdfast.Policy{Safety: call.ReadOnly})...)
	},
}

func kit(t *testing.T, p holdfast.Policy) []grpc.DialOption {
	t.Helper()
	k, err := holdfast.New(holdfast.Config{Default: p})
	require.NoError(t, err)
	return grpcmw.DialOptions(k)
}

// serve starts the interop server on a loopback port.
func serve(t *testing.T) (target string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(orca.CallMetricsServerOption(nil))
	testpb.RegisterTestServiceServer(s, interop.NewTestServer())
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, <-served)
	})
	return l.Addr().String()
}

func dial(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cc.Close()) })
	return cc
}

// Every case passes on a bare connection, and with the kit in every set-up.
func TestInterop(t *testing.T) {
	target := serve(t)
	for setup, options := range setups {
		for name, run := range cases {
			t.Run(setup+"/"+name, func(t *testing.T) {
				opts := options(t)
				if name == "orca_per_rpc" {
					opts = append(opts, grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"test_backend_metrics_load_balancer": {}}]}`))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.Empty(t, check(func() { run(ctx, dial(t, target, opts...)) }))
			})
		}
	}
}

// Each of 3 channels of its own makes its calls, under one kit.
func TestInteropChannelSoak(t *testing.T) {
	target := serve(t)
	options := kit(t, holdfast.Policy{})
	require.Empty(t, check(func() {
		interop.DoSoakTest(t.Context(), interop.SoakTestConfig{
			RequestSize: 271828, ResponseSize: 314159, PerIterationMaxAcceptableLatency: 10 * time.Second,
			OverallTimeout: time.Minute, ServerAddr: target, NumWorkers: 1, Iterations: 3,
			ChannelForTest: func() (*grpc.ClientConn, func()) {
				return dial(t, target, options...), func() {}
			},
		})
	}))
}

// What the table proves is worth nothing if a failing check were not seen.
func TestAFailingCheckIsSeen(t *testing.T) {
	cc := dial(t, serve(t), grpc.WithChainUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
		return context.Canceled
	}))
	for name, run := range cases {
		complaint := check(func() { run(t.Context(), cc) })
		unary := strings.Contains(name, "unary") || strings.Contains(name, "status") || strings.Contains(name, "unimplemented") ||
			name == "custom_metadata" || name == "orca_per_rpc" || name == "rpc_soak"
		require.Equal(t, unary, complaint != "", name)
	}
}
