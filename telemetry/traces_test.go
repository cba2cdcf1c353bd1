package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/telemetry"
)

// spans are recorded as they end.
type spans struct{ *tracetest.SpanRecorder }

// traced attaches spans to a kit.
func traced(t *testing.T, k *holdfast.Kit, c telemetry.Traces) spans {
	t.Helper()
	r := spans{tracetest.NewSpanRecorder()}
	c.Provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(r))
	c.Propagator = propagation.TraceContext{}
	t.Cleanup(c.Attach(k))
	return r
}

// of returns the spans of a kind that have ended, in the order of their begin.
func (r spans) of(kind trace.SpanKind) (found []sdk.ReadOnlySpan) {
	for _, s := range r.Ended() {
		if s.SpanKind() == kind {
			found = append(found, s)
		}
	}
	return found
}

// attr returns an attribute as text, "-" if there is none.
func attr(s sdk.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return "-"
}

func events(s sdk.ReadOnlySpan) (all []string) {
	for _, e := range s.Events() {
		text := e.Name
		for _, kv := range e.Attributes {
			text += fmt.Sprintf(" %s=%s", kv.Key, kv.Value.String())
		}
		all = append(all, text)
	}
	return all
}

func repeats() holdfast.Policy {
	p := quick()
	p.Retry = &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Jitter: retry.NoJitter}}
	return p
}

// server answers by a script of statuses, and keeps the trace headers.
type server struct {
	mu      sync.Mutex
	answers []int
	seen    []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	code := s.answers[min(len(s.seen), len(s.answers)-1)]
	s.seen = append(s.seen, r.Header.Get("Traceparent"))
	s.mu.Unlock()
	w.WriteHeader(code)
	_, _ = io.WriteString(w, "body")
}

// D085: a span for the call, and one for each attempt with a trace header of its
// own.
func TestD085_EveryAttemptHasItsSpan(t *testing.T) {
	for _, proto := range memnet.Protos() {
		t.Run(string(proto), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: []int{503, 503, 200}}
				wire := memnet.Start(t, proto, s)
				k, err := holdfast.New(holdfast.Config{Name: "shop", Default: repeats(), Methods: map[string]holdfast.Policy{"GET /items/{id}": {}}})
				require.NoError(t, err)
				r := traced(t, k, telemetry.Traces{})
				client := &http.Client{Transport: httpmw.NewTransport(wire.Transport, k)}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, wire.URL+"/items/7?token=secret", nil)
				require.NoError(t, err)
				resp, err := client.Do(req)
				require.NoError(t, err)
				require.Empty(t, r.of(trace.SpanKindInternal), "its body has not been read")
				_, err = io.ReadAll(resp.Body)
				require.NoError(t, err)
				resp.Body.Close()

				calls, attempts := r.of(trace.SpanKindInternal), r.of(trace.SpanKindClient)
				require.Len(t, calls, 1)
				require.Len(t, attempts, 3)
				outer := calls[0]
				require.Equal(t, "GET /items/{id}", outer.Name())
				require.Equal(t, "ok", attr(outer, "holdfast.result"))
				require.Equal(t, "3", attr(outer, "holdfast.attempts"))
				require.Equal(t, "shop", attr(outer, "holdfast.kit"))
				require.Equal(t, "read_only", attr(outer, "holdfast.safety"))
				require.Equal(t, codes.Unset, outer.Status().Code)
				require.Equal(t, []string{
					"holdfast.retry holdfast.attempt=2 holdfast.after=unavailable holdfast.delay=0.01",
					"holdfast.retry holdfast.attempt=3 holdfast.after=unavailable holdfast.delay=0.02",
				}, events(outer))

				for i, a := range attempts {
					require.Equal(t, outer.SpanContext().SpanID(), a.Parent().SpanID())
					require.Equal(t, []string{"503", "503", "200"}[i], attr(a, "http.response.status_code"))
					require.Equal(t, []string{"-", "1", "2"}[i], attr(a, "http.request.resend_count"))
					require.Equal(t, "GET", attr(a, "http.request.method"))
					require.NotEqual(t, "-", attr(a, "server.address"))
					require.Equal(t, []codes.Code{codes.Error, codes.Error, codes.Unset}[i], a.Status().Code)
					require.Equal(t, []string{"unavailable", "unavailable", "-"}[i], attr(a, "error.type"))
					require.Equal(t, fmt.Sprintf("00-%s-%s-01", a.SpanContext().TraceID(), a.SpanContext().SpanID()), s.seen[i],
						"the header names the attempt's span")
					require.Equal(t, outer.SpanContext().TraceID(), a.SpanContext().TraceID())
				}
				for _, span := range r.Ended() { // H4
					require.NotContains(t, fmt.Sprint(span.Name(), span.Attributes(), span.Events(), span.Status()), "secret")
				}
			})
		})
	}
}

// D085: a call that an open breaker refuses has a span with an event, and no
// attempt.
func TestD085_ARefusedCallHasNoAttempt(t *testing.T) {
	k := newKit(t, "shop", quick())
	open(t, k, read)
	r := traced(t, k, telemetry.Traces{})
	require.Error(t, do(t.Context(), k, read, nil))
	require.Empty(t, r.of(trace.SpanKindClient))
	calls := r.of(trace.SpanKindInternal)
	require.Len(t, calls, 1)
	require.Equal(t, []string{"holdfast.refused holdfast.attempt=1 holdfast.cause=open"}, events(calls[0]))
	require.Equal(t, sdk.Status{Code: codes.Error, Description: "refused"}, calls[0].Status())
	require.Equal(t, "0", attr(calls[0], "holdfast.attempts"))
}

// The same over gRPC, for unary calls and streams; a stream's spans end with it.
func TestD085_EveryAttemptHasItsSpanOverGRPC(t *testing.T) {
	for _, streaming := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", streaming), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []string
				s := memgrpc.Serve(t, func(grpc.ServiceRegistrar) {}, grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
					md, _ := metadata.FromIncomingContext(ss.Context())
					seen = append(seen, strings.Join(md.Get("traceparent"), ","))
					if len(seen) < 3 {
						return status.Error(grpccodes.Unavailable, "secret")
					}
					if err := ss.RecvMsg(new(emptypb.Empty)); err != nil {
						return err
					}
					return ss.SendMsg(new(emptypb.Empty))
				}))
				p := repeats()
				p.Safety = call.ReadOnly
				k := newKit(t, "shop", p)
				r := traced(t, k, telemetry.Traces{})
				cc := s.Dial(grpcmw.DialOptions(k, grpcmw.WithTarget("db.example.com:443"))...)
				if streaming {
					st, err := cc.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/shop.v1.Catalog/List")
					require.NoError(t, err)
					require.NoError(t, st.SendMsg(new(emptypb.Empty)))
					require.NoError(t, st.CloseSend())
					require.NoError(t, st.RecvMsg(new(emptypb.Empty)))
					require.Empty(t, r.of(trace.SpanKindInternal))
					require.Equal(t, io.EOF, st.RecvMsg(new(emptypb.Empty)))
				} else {
					require.NoError(t, cc.Invoke(t.Context(), "/shop.v1.Catalog/List", new(emptypb.Empty), new(emptypb.Empty)))
				}
				synctest.Wait()
				require.Len(t, r.of(trace.SpanKindInternal), 1)
				attempts := r.of(trace.SpanKindClient)
				require.Len(t, attempts, 3)
				for i, a := range attempts {
					require.Equal(t, []string{"-", "1", "2"}[i], attr(a, "http.request.resend_count"))
					require.Equal(t, []string{"14", "14", "0"}[i], attr(a, "rpc.grpc.status_code"))
					require.Equal(t, []string{"grpc", "shop.v1.Catalog", "List", "db.example.com", "443"}, []string{
						attr(a, "rpc.system"), attr(a, "rpc.service"), attr(a, "rpc.method"), attr(a, "server.address"), attr(a, "server.port"),
					})
					require.Equal(t, fmt.Sprintf("00-%s-%s-01", a.SpanContext().TraceID(), a.SpanContext().SpanID()), seen[i])
					require.NotContains(t, fmt.Sprint(a.Attributes(), a.Events(), a.Status()), "secret")
				}
			})
		})
	}
}

// Where otelhttp makes the attempts' spans, ours are left out, and its are within
// the call's.
func TestO1_TheInnerSpansMayBeAnothers(t *testing.T) {
	k := newKit(t, "shop", repeats())
	r := traced(t, k, telemetry.Traces{OuterOnly: true})
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(r)).Tracer("theirs")
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		_, span := tracer.Start(req.Context(), "theirs", trace.WithSpanKind(trace.SpanKindClient))
		defer span.End()
		require.Empty(t, req.Header.Get("Traceparent"), "that is theirs to write too")
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
	})
	req, err := http.NewRequest(http.MethodGet, "http://api.example.com/", nil)
	require.NoError(t, err)
	_, err = httpmw.NewTransport(base, k).RoundTrip(req)
	require.NoError(t, err)
	calls, attempts := r.of(trace.SpanKindInternal), r.of(trace.SpanKindClient)
	require.Len(t, calls, 1)
	require.Len(t, attempts, 3)
	for _, a := range attempts {
		require.Equal(t, "theirs", a.Name())
		require.Equal(t, calls[0].SpanContext().SpanID(), a.Parent().SpanID())
	}
}

// Hedges, fallbacks, probes and waits are seen as well, and the caller's own span is
// the parent.
func TestO1_SpansTellOfHedgesProbesAndFallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = &retry.Policy{Hedge: retry.Hedge{Delay: 10 * time.Millisecond}}
		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return 7, nil }}
		k := newKit(t, "shop", p)
		r := traced(t, k, telemetry.Traces{})
		ctx, own := sdk.NewTracerProvider(sdk.WithSpanProcessor(r)).Tracer("app").Start(t.Context(), "handler", trace.WithSpanKind(trace.SpanKindServer))
		defer own.End()
		_, err := holdfast.Do(ctx, k, read, func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(12 * time.Millisecond):
				if trace.SpanFromContext(ctx).(sdk.ReadOnlySpan).SpanKind() != trace.SpanKindClient {
					return 0, errors.New("the attempt's context has no span of its own")
				}
				return 1, nil
			}
		})
		require.NoError(t, err)
		outer := r.of(trace.SpanKindInternal)[0]
		require.Equal(t, own.SpanContext().SpanID(), outer.Parent().SpanID())
		require.Equal(t, []string{"holdfast.hedge holdfast.attempt=2"}, events(outer))
		hedges := 0
		for _, a := range r.of(trace.SpanKindClient) {
			if attr(a, "holdfast.hedge") == "true" {
				hedges++
				require.Equal(t, "canceled", attr(a, "holdfast.result"))
				require.Equal(t, codes.Unset, a.Status().Code, "to lose is no error")
			}
		}
		require.Equal(t, 1, hedges)

		for range 5 {
			_ = do(ctx, k, call.Info{Target: "db", Method: "insert"}, errDown)
		}
		time.Sleep(time.Second)
		r.Reset()
		require.NoError(t, do(ctx, k, read, errDown), "answered by the fallback")
		outer = r.of(trace.SpanKindInternal)[0]
		require.Equal(t, "true", attr(outer, "holdfast.fallback"))
		require.Equal(t, codes.Unset, outer.Status().Code, "the caller got an answer")
		require.Equal(t, "true", attr(r.of(trace.SpanKindClient)[0], "holdfast.probe"))
	})
}

// Without a provider nothing is recorded, and nothing breaks; stopped, no span is
// begun.
func TestO1_TracesAreUndone(t *testing.T) {
	k := newKit(t, "shop", quick())
	stop := telemetry.Traces{}.Attach(k)
	require.NoError(t, do(t.Context(), k, read, nil))
	stop()
	r := tracetest.NewSpanRecorder()
	stop = telemetry.Traces{Provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(r))}.Attach(k)
	require.NoError(t, do(t.Context(), k, read, nil))
	stop()
	stop()
	require.NoError(t, do(t.Context(), k, read, nil))
	require.Len(t, r.Ended(), 2)
	require.Len(t, r.Started(), 2)
	require.Equal(t, attribute.StringValue("select"), r.Ended()[1].Attributes()[1].Value)
}
