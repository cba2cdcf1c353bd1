package telemetry

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// Traces says how the calls of kits become spans: an INTERNAL one for each call,
// and within it a CLIENT one for each attempt. Refusals, repeats and hedges are
// events of the call's. A span holds no header, no error's text and no query: of an
// error it says the class. The zero Traces is useful.
type Traces struct {
	// Provider is where the spans go. Nil is the global one, which drops them
	// until the program sets another.
	Provider trace.TracerProvider

	// Propagator writes the trace header of each attempt, which names that
	// attempt's span. Nil is the global one, which writes nothing until the
	// program sets another.
	Propagator propagation.TextMapPropagator

	// OuterOnly leaves out the attempts' spans and headers, for clients under
	// which otelhttp or otelgrpc makes both. An otelhttp.Transport is the base of
	// the kit's then, and otelgrpc's stats handler sees each attempt by itself.
	OuterOnly bool
}

// Attach makes spans of the kits' calls until stop is called. Those that have
// begun are ended. It panics if a kit is nil.
func (c Traces) Attach(kits ...*holdfast.Kit) (stop func()) {
	if c.Provider == nil {
		c.Provider = otel.GetTracerProvider()
	}
	if c.Propagator == nil {
		c.Propagator = otel.GetTextMapPropagator()
	}
	return attach(kits, func(k *holdfast.Kit) holdfast.Hooks {
		t := tracer{Tracer: c.Provider.Tracer(ScopeName), propagator: c.Propagator, kit: attribute.String("holdfast.kit", k.Name())}
		return t.hooks(c.OuterOnly)
	})
}

// attach attaches hooks to each of the kits.
func attach(kits []*holdfast.Kit, hooks func(*holdfast.Kit) holdfast.Hooks) (stop func()) {
	var detach []func()
	for _, k := range kits {
		detach = append(detach, k.Attach(hooks(k)))
	}
	return func() {
		for _, f := range detach {
			f()
		}
	}
}

type tracer struct {
	trace.Tracer
	propagator propagation.TextMapPropagator
	kit        attribute.KeyValue
}

func (t tracer) hooks(outerOnly bool) holdfast.Hooks {
	h := holdfast.Hooks{
		Call:    t.call,
		Attempt: t.attempt,
		Retry: func(ctx context.Context, r holdfast.Retry) {
			event(ctx, "holdfast.retry", attribute.Int("holdfast.attempt", r.Attempt),
				attribute.String("holdfast.after", r.After.Class.String()), attribute.Float64("holdfast.delay", r.Delay.Seconds()))
		},
		Failover: func(ctx context.Context, f holdfast.Failover) {
			event(ctx, "holdfast.failover", attribute.Int("holdfast.attempt", f.Attempt),
				attribute.String("holdfast.from", redact(f.From)), attribute.String("holdfast.after", f.After.Class.String()))
		},
		Refused: func(ctx context.Context, r holdfast.Refusal) {
			event(ctx, "holdfast.refused", attribute.Int("holdfast.attempt", r.Attempt), attribute.String("holdfast.cause", r.Cause.String()))
		},
		Hedged: func(ctx context.Context, h holdfast.Hedge) {
			event(ctx, "holdfast.hedge", attribute.Int("holdfast.attempt", h.Attempt))
		},
		HedgeWon: func(ctx context.Context, h holdfast.Hedge) {
			event(ctx, "holdfast.hedge_won", attribute.Int("holdfast.attempt", h.Attempt))
		},
		Queued: func(ctx context.Context, q holdfast.Queued) {
			event(ctx, "holdfast.queued", attribute.Float64("holdfast.waited", q.Took.Seconds()), attribute.Bool("holdfast.refused", q.Err != nil))
		},
	}
	if outerOnly {
		h.Attempt = nil
	}
	return h
}

// callKey finds the span of a kit's call, which need not be the one in force where
// another package has put its own within.
type callKey struct{}

func event(ctx context.Context, name string, attrs ...attribute.KeyValue) {
	if span, ok := ctx.Value(callKey{}).(trace.Span); ok && span.IsRecording() {
		span.AddEvent(name, trace.WithAttributes(attrs...))
	}
}

func (t tracer) call(ctx context.Context, info call.Info) (context.Context, func(holdfast.CallEnd)) {
	name := redact(info.Method)
	if name == "" {
		name = "call"
	}
	ctx, span := t.Start(ctx, name, trace.WithSpanKind(trace.SpanKindInternal))
	ctx = context.WithValue(ctx, callKey{}, span)
	if span.IsRecording() {
		span.SetAttributes(t.kit, attribute.String("holdfast.method", name),
			attribute.String("holdfast.target", redact(info.Target)), attribute.String("holdfast.safety", info.Safety.String()))
		if info.Resource != "" {
			span.SetAttributes(attribute.String("holdfast.resource", redact(info.Resource)))
		}
	}
	return ctx, func(end holdfast.CallEnd) {
		if span.IsRecording() {
			span.SetAttributes(attribute.String("holdfast.result", end.Result.Class.String()), attribute.Int("holdfast.attempts", end.Attempts))
			switch {
			case end.Fallback:
				span.SetAttributes(attribute.Bool("holdfast.fallback", true))
			default:
				fail(span, end.Result.Class)
			}
		}
		span.End()
	}
}

func (t tracer) attempt(ctx context.Context, a call.Attempt) (context.Context, func(call.Result)) {
	name := redact(a.Info.Method)
	if name == "" {
		name = "attempt"
	}
	ctx, span := t.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("holdfast.attempt", a.Number))
		span.SetAttributes(wireAttrs(a)...)
		if a.Number > 1 {
			span.SetAttributes(attribute.Int("http.request.resend_count", a.Number-1))
		}
		if a.Hedge {
			span.SetAttributes(attribute.Bool("holdfast.hedge", true))
		}
		if a.Probe {
			span.SetAttributes(attribute.Bool("holdfast.probe", true))
		}
	}
	if a.Header != nil {
		t.propagator.Inject(ctx, carrier{a.Header})
	}
	return ctx, func(r call.Result) {
		if span.IsRecording() {
			span.SetAttributes(attribute.String("holdfast.result", r.Class.String()))
			switch {
			case a.Wire == "http" && r.Code > 0:
				span.SetAttributes(attribute.Int("http.response.status_code", r.Code))
			case a.Wire == "grpc" && (r.Code > 0 || r.Class == call.OK):
				span.SetAttributes(attribute.Int("rpc.grpc.status_code", r.Code))
			}
			fail(span, r.Class)
		}
		span.End()
	}
}

// fail marks the span of what has not ended well. To be cancelled is no error.
func fail(span trace.Span, class call.Class) {
	if class == call.OK || class == call.Canceled {
		return
	}
	span.SetAttributes(attribute.String("error.type", class.String()))
	span.SetStatus(codes.Error, class.String())
}

// wireAttrs returns what the semantic conventions say of the wire, as far as it is
// no secret.
func wireAttrs(a call.Attempt) []attribute.KeyValue {
	var attrs []attribute.KeyValue
	switch a.Wire {
	case "http":
		method, _, _ := strings.Cut(a.Info.Method, " ")
		if strings.Contains(method, "/") {
			method = "_OTHER" // a pattern for every method does not tell which
		}
		attrs = append(attrs, attribute.String("http.request.method", method))
	case "grpc":
		service, method, _ := strings.Cut(strings.TrimPrefix(a.Info.Method, "/"), "/")
		attrs = append(attrs, attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", method))
	default:
		return nil
	}
	if u, err := url.Parse(a.Info.Target); err == nil && u.Host != "" {
		return append(attrs, address(u.Host)...)
	}
	return append(attrs, address(redact(a.Info.Target))...)
}

func address(host string) []attribute.KeyValue {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return []attribute.KeyValue{attribute.String("server.address", host)}
	}
	attrs := []attribute.KeyValue{attribute.String("server.address", name)}
	if n, err := strconv.Atoi(port); err == nil {
		attrs = append(attrs, attribute.Int("server.port", n))
	}
	return attrs
}

// carrier lets a propagator write to an attempt's header.
type carrier struct{ call.Header }
