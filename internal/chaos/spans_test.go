package chaos

import (
	"context"
	"fmt"
	"sync"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// trace follows the calls of the kits with telemetry's spans, of which the ledger
// keeps the numbers alone.
func (l *ledger) trace(kits ...*holdfast.Kit) (stop func()) {
	return telemetry.Traces{Provider: countingProvider{sdk.NewTracerProvider(sdk.WithSpanProcessor(&l.spans)), l}}.Attach(kits...)
}

type spanID = trace.SpanID

// spanBook is a processor of the SDK's that counts spans and drops them.
type spanBook struct {
	ends pairs // calls of End, which the SDK itself hears once of each span

	mu       sync.Mutex
	calls    int            // spans of calls that were started
	attempts int            // and of attempts
	ended    int            // of either
	early    []string       // spans of calls that ended before one of an attempt in them
	open     map[spanID]int // spans of calls that run: their attempts that do
}

func (b *spanBook) OnStart(_ context.Context, s sdk.ReadWriteSpan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.SpanKind() == trace.SpanKindInternal {
		b.calls++
		b.open[s.SpanContext().SpanID()] = 0
		return
	}
	b.attempts++
	b.count(s, +1)
}

func (b *spanBook) OnEnd(s sdk.ReadOnlySpan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended++
	if s.SpanKind() != trace.SpanKindInternal {
		b.count(s, -1)
		return
	}
	if n := b.open[s.SpanContext().SpanID()]; n != 0 && len(b.early) < 50 {
		b.early = append(b.early, fmt.Sprintf("the span of %s ended before %d of its attempts", s.Name(), n))
	}
	delete(b.open, s.SpanContext().SpanID())
}

// count counts the span of an attempt in that of its call.
func (b *spanBook) count(s sdk.ReadOnlySpan, n int) {
	of := s.Parent().SpanID()
	if _, ok := b.open[of]; !ok && len(b.early) < 50 {
		b.early = append(b.early, fmt.Sprintf("an attempt's span of %s is in no call's", s.Name()))
		return
	}
	b.open[of] += n
}

func (*spanBook) Shutdown(context.Context) error   { return nil }
func (*spanBook) ForceFlush(context.Context) error { return nil }

// amiss returns what is wrong with the spans of so many calls and attempts.
func (b *spanBook) amiss(calls, attempts int64) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if started := b.calls + b.attempts; started != b.ended || len(b.open) != 0 || !b.ends.even() {
		all = append(all, fmt.Sprintf("spans: %d started, %d ended, %d of calls open; calls of End: %s", started, b.ended, len(b.open), &b.ends))
	}
	if int64(b.calls) != calls || int64(b.attempts) != attempts {
		all = append(all, fmt.Sprintf("spans: %d of %d calls, %d of %d attempts", b.calls, calls, b.attempts, attempts))
	}
	return append(all, b.early...)
}

// countingProvider is the SDK's, with spans that count how often they are ended.
type countingProvider struct {
	*sdk.TracerProvider
	ledger *ledger
}

func (p countingProvider) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return countingTracer{p.TracerProvider.Tracer(name, opts...), p.ledger}
}

type countingTracer struct {
	trace.Tracer
	ledger *ledger
}

func (t countingTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, span := t.Tracer.Start(ctx, name, opts...)
	span = countingSpan{span, t.ledger.spans.ends.begin()}
	return trace.ContextWithSpan(ctx, span), span
}

type countingSpan struct {
	trace.Span
	end func()
}

func (s countingSpan) End(opts ...trace.SpanEndOption) {
	s.end()
	s.Span.End(opts...)
}
