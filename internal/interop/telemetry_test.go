package interop_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
)

// tracing returns a provider and what records its spans, each when it has ended.
func tracing(t *testing.T) (*trace.TracerProvider, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider, recorder
}

// logbook keeps what the logging interceptors of go-grpc-middleware write.
type logbook struct {
	name  string
	mu    sync.Mutex
	lines *[]string
}

func (b *logbook) Log(_ context.Context, _ logging.Level, message string, fields ...any) {
	code := any(nil)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "grpc.code" {
			code = fields[i+1]
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lines != nil {
		*b.lines = append(*b.lines, fmt.Sprint(b.name, " ", message, " ", code))
	}
}

func (b *logbook) options() []grpc.DialOption {
	events := logging.WithLogOnEvents(logging.FinishCall)
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(logging.UnaryClientInterceptor(b, events)),
		grpc.WithChainStreamInterceptor(logging.StreamClientInterceptor(b, events)),
	}
}
