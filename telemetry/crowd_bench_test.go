//go:build unix

package telemetry_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast/telemetry"
)

// The page and a scrape while 10,000 breakers live.
func BenchmarkTenThousand(b *testing.B) {
	page, k := crowd(b)
	b.Run("Page", func(b *testing.B) {
		measured(b, func() { get(b, page, "/") })
	})
	b.Run("JSON", func(b *testing.B) {
		measured(b, func() { get(b, page, "/", "Accept", "application/json") })
	})
	for name, keys := range map[string]int{"": 0, "EveryKey": 10_000} {
		scrape := scraped(b, telemetry.Metrics{MaxKeys: keys}, k)
		b.Run("Scrape"+name, func(b *testing.B) {
			measured(b, func() { scrape() })
		})
	}
	reader := metric.NewManualReader()
	_, err := telemetry.Metrics{Provider: metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(0)), MaxKeys: 10_000}.Register(k)
	require.NoError(b, err)
	b.Run("CollectEveryKey", func(b *testing.B) {
		measured(b, func() { collect(b, reader) })
	})
}

// measured runs f, and reports the processor time of a run beside the time on the
// clock, which on a machine that others use says little.
func measured(b *testing.B, f func()) {
	began := processorTime()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(processorTime()-began)/float64(b.N)/1e6, "cpu-ms/op")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
