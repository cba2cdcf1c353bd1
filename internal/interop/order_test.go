package interop_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
)

// failing is a test service that is down for the first hits.
type failing struct {
	testpb.UnimplementedTestServiceServer
	downs int

	mu      sync.Mutex
	hits    int
	parents []string // the traceparent of each hit
}

func (f *failing) hit(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	f.parents = append(f.parents, strings.Join(md["traceparent"], ","))
	if f.hits++; f.hits <= f.downs {
		return status.Error(codes.Unavailable, "as told")
	}
	return nil
}

func (f *failing) EmptyCall(ctx context.Context, _ *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, f.hit(ctx)
}

func (f *failing) StreamingOutputCall(_ *testpb.StreamingOutputCallRequest, s testpb.TestService_StreamingOutputCallServer) error {
	if err := f.hit(s.Context()); err != nil {
		return err
	}
	return s.Send(&testpb.StreamingOutputCallResponse{})
}

func start(t *testing.T, f *failing, opts ...grpc.DialOption) testpb.TestServiceClient {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	testpb.RegisterTestServiceServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return testpb.NewTestServiceClient(dial(t, l.Addr().String(), opts...))
}

// quick repeats without a wait, so that no test waits.
func quick() holdfast.Policy {
	return holdfast.Policy{Safety: call.ReadOnly, Retry: &retry.Policy{Backoff: retry.NoWait()}}
}

var kinds = map[string]func(context.Context, testpb.TestServiceClient) error{
	"unary": func(ctx context.Context, c testpb.TestServiceClient) error {
		_, err := c.EmptyCall(ctx, &testpb.Empty{})
		return err
	},
	"server stream": func(ctx context.Context, c testpb.TestServiceClient) error {
		s, err := c.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{})
		for err == nil {
			_, err = s.Recv()
		}
		if err == io.EOF {
			return nil
		}
		return err
	},
}

// The logging interceptor of go-grpc-middleware before the kit writes a line for
// each call, the same behind it one for each attempt; the stats handler of
// OpenTelemetry makes a span for each attempt, whose parent is the caller's and
// which the server is told of. D090.
func TestG4_RealLoggingAndTracesBesideTheKit(t *testing.T) {
	for kind, do := range kinds {
		t.Run(kind, func(t *testing.T) {
			var lines []string
			before, behind := &logbook{name: "call", lines: &lines}, &logbook{name: "attempt", lines: &lines}
			provider, recorder := tracing(t)
			opts := append(before.options(), kit(t, quick())...)
			opts = append(opts, behind.options()...)
			opts = append(opts, grpc.WithStatsHandler(otelgrpc.NewClientHandler(
				otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagation.TraceContext{}))))
			f := &failing{downs: 2}
			client := start(t, f, opts...)

			ctx, caller := provider.Tracer("test").Start(t.Context(), "caller")
			require.NoError(t, do(ctx, client))
			caller.End()
			require.Equal(t, []string{
				"attempt finished call Unavailable", "attempt finished call Unavailable", "attempt finished call OK", "call finished call OK",
			}, lines)
			requireAttemptSpans(t, recorder.Ended(), caller, f.parents, 3)
		})
	}
}

// requireAttemptSpans holds the spans of n attempts against their parent and what
// the server was told.
func requireAttemptSpans(t *testing.T, spans []oteltrace.ReadOnlySpan, parent trace.Span, told []string, n int) {
	t.Helper()
	require.Len(t, spans, n+1, "with the parent")
	require.Len(t, told, n)
	for _, span := range spans {
		if span.SpanContext().SpanID() == parent.SpanContext().SpanID() {
			continue
		}
		require.Equal(t, parent.SpanContext().SpanID(), span.Parent().SpanID())
		require.Equal(t, trace.SpanKindClient, span.SpanKind())
		id := span.SpanContext().SpanID().String()
		require.Equal(t, 1, strings.Count(strings.Join(told, " "), id), "the server is told of each attempt's span")
	}
}

// A call that the kit refuses has no attempt: no line and no span, but the caller's.
func TestG4_ARefusedCallHasNoAttempt(t *testing.T) {
	for kind, do := range kinds {
		t.Run(kind, func(t *testing.T) {
			k, err := holdfast.New(holdfast.Config{Default: quick()})
			require.NoError(t, err)
			var lines []string
			before, behind := &logbook{name: "call", lines: &lines}, &logbook{name: "attempt", lines: &lines}
			provider, recorder := tracing(t)
			opts := append(before.options(), grpcmw.DialOptions(k)...)
			opts = append(opts, behind.options()...)
			opts = append(opts, grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(provider))))
			client := start(t, &failing{}, opts...)
			require.NoError(t, do(t.Context(), client))
			for _, b := range k.Breakers() {
				b.ForceOpen("for the test")
			}
			spans := len(recorder.Ended())
			lines = nil
			require.Equal(t, codes.Unavailable, status.Code(do(t.Context(), client)))
			require.Equal(t, []string{"call finished call Unavailable"}, lines)
			require.Len(t, recorder.Ended(), spans)
		})
	}
}

// scriptedHTTP answers the first hits with 503.
func scriptedHTTP(t *testing.T, downs int) (url string, told *[]string) {
	var mu sync.Mutex
	told = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		*told = append(*told, r.Header.Get("traceparent"))
		if len(*told) <= downs {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "the body")
	}))
	t.Cleanup(s.Close)
	return s.URL, told
}

// otelhttp behind the kit makes a span for each attempt, before it one for the call
// that ends with the body; both at once nest.
func TestOtelhttpInsideAndOutside(t *testing.T) {
	for name, c := range map[string]struct {
		inside, outside bool
		spans           int
	}{
		"inside": {true, false, 3}, "outside": {false, true, 1}, "both": {true, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			provider, recorder := tracing(t)
			options := []otelhttp.Option{otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{})}
			url, told := scriptedHTTP(t, 2)
			base := http.DefaultTransport.(*http.Transport).Clone()
			defer base.CloseIdleConnections()
			var rt http.RoundTripper = base
			if c.inside {
				rt = otelhttp.NewTransport(rt, options...)
			}
			k, err := holdfast.New(holdfast.Config{Default: quick()})
			require.NoError(t, err)
			rt = httpmw.NewTransport(rt, k)
			if c.outside {
				rt = otelhttp.NewTransport(rt, options...)
			}
			ctx, caller := provider.Tracer("test").Start(t.Context(), "caller")
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			require.NoError(t, err)
			resp, err := (&http.Client{Transport: rt}).Do(req)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			if c.outside {
				require.Len(t, recorder.Ended(), c.spans-btoi(c.outside)-btoi(c.inside), "the call's span lasts to the end of the body, and the last attempt's")
			}
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "the body", string(text))
			require.NoError(t, resp.Body.Close())
			caller.End()

			spans := recorder.Ended()
			require.Len(t, spans, c.spans+1)
			require.Len(t, *told, 3)
			switch {
			case !c.outside:
				requireAttemptSpans(t, spans, caller, *told, 3)
			case !c.inside:
				for _, parent := range *told {
					require.Equal(t, (*told)[0], parent, "there is one span to tell of")
				}
			default:
				distinct := map[string]bool{}
				for _, parent := range *told {
					distinct[parent] = true
				}
				require.Len(t, distinct, 3)
			}
			for _, span := range spans {
				require.False(t, span.EndTime().IsZero())
			}
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A request whose body has to be sent again, through otelhttp on both sides.
func TestOtelhttpAndARequestBody(t *testing.T) {
	provider, _ := tracing(t)
	var mu sync.Mutex
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if bodies = append(bodies, string(body)); len(bodies) < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer s.Close()
	k, err := holdfast.New(holdfast.Config{Default: quick()})
	require.NoError(t, err)
	base := http.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	rt := otelhttp.NewTransport(httpmw.NewTransport(otelhttp.NewTransport(base, otelhttp.WithTracerProvider(provider)), k), otelhttp.WithTracerProvider(provider))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL, strings.NewReader("a body"))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: rt}).Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, []string{"a body", "a body", "a body"}, bodies)
}
