package telemetry_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/telemetry"
	"github.com/holdfast-go/holdfast/timeout"
)

// plain is the least that a kit does: the standard breaker and bulkhead.
func plain(t testing.TB) *holdfast.Kit {
	return newKit(t, "shop", holdfast.Policy{Retry: retry.Off(), Timeout: timeout.Off(), Bulkhead: &bulkhead.Config{Limit: 1000}})
}

var once = call.Info{Target: "db", Method: "insert"}

// ways are what telemetry may be asked for, with the allocations that each adds to
// a call.
var ways = []struct {
	name   string
	attach func(testing.TB, *holdfast.Kit)
	allocs float64
}{
	{"Off", func(testing.TB, *holdfast.Kit) {}, 0},
	{"MetricsWithoutProvider", func(t testing.TB, k *holdfast.Kit) {
		_, err := telemetry.Metrics{}.Register(k)
		require.NoError(t, err)
	}, 0},
	{"Metrics", func(t testing.TB, k *holdfast.Kit) { meter(t, telemetry.Metrics{}, k) }, 0},
	{"MetricsAndPage", func(t testing.TB, k *holdfast.Kit) {
		meter(t, telemetry.Metrics{}, k)
		t.Cleanup(telemetry.Page(k).Close)
	}, 0},
	{"CallDurations", func(t testing.TB, k *holdfast.Kit) { meter(t, telemetry.Metrics{Durations: true}, k) }, 0},
	{"CallAndAttemptDurations", func(t testing.TB, k *holdfast.Kit) {
		meter(t, telemetry.Metrics{Durations: true, AttemptDurations: true}, k)
	}, 0},
	{"TracesWithoutProvider", func(_ testing.TB, k *holdfast.Kit) { telemetry.Traces{}.Attach(k) }, -1},
	{"TracesDropped", func(_ testing.TB, k *holdfast.Kit) {
		telemetry.Traces{Provider: sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))}.Attach(k)
	}, -1},
}

// A call with telemetry and without, beside one without the kit.
func BenchmarkTelemetry(b *testing.B) {
	noop := func(context.Context) (int, error) { return 1, nil }
	b.Run("Bare", func(b *testing.B) {
		for b.Loop() {
			_, _ = noop(context.Background())
		}
	})
	b.Run("BareAtomicAdd", func(b *testing.B) {
		var n atomic.Uint64
		for b.Loop() {
			n.Add(1)
		}
	})
	for _, way := range ways {
		k := plain(b)
		way.attach(b, k)
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = holdfast.Do(context.Background(), k, once, noop)
			}
		})
		b.Run(way.name+"Parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = holdfast.Do(context.Background(), k, once, noop)
				}
			})
		})
	}
}

// Metrics cost a call no allocation, histograms included.
func TestMetricsAllocateNothing(t *testing.T) {
	noop := func(context.Context) (int, error) { return 1, nil }
	for _, way := range ways {
		if way.allocs < 0 {
			continue
		}
		k := plain(t)
		way.attach(t, k)
		require.Equal(t, way.allocs, testing.AllocsPerRun(200, func() { _, _ = holdfast.Do(context.Background(), k, once, noop) }), way.name)
	}
}

// What a scrape writes is bounded by MaxKeys, not by the breakers that live.
func TestAScrapeOfTenThousandBreakersIsBounded(t *testing.T) {
	_, k := crowd(t)
	text := scraped(t, telemetry.Metrics{}, k)()
	require.Less(t, len(text), 300<<10)
	require.Contains(t, text, `state="open"`)
	every := scraped(t, telemetry.Metrics{MaxKeys: 10_000}, k)()
	require.Greater(t, len(parsed(t, every)["holdfast_breaker_state"].Metric), 10_000)
}
