package main

import (
	"context"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	holdcall "github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/telemetry"
	"github.com/holdfast-go/holdfast/timeout"
)

// watched is a call by a kit whose metrics are asked for; nil asks for none.
func watched(name string, role role, metrics func() telemetry.Metrics) contender {
	return contender{name: name, role: role, setup: func() work {
		k := newKit(holdfast.Policy{Retry: retry.Off(), Timeout: timeout.Off(), Bulkhead: &bulkhead.Config{Limit: 1000}})
		if metrics != nil {
			if _, err := metrics().Register(k); err != nil {
				panic(err)
			}
		}
		ctx, info := context.Background(), holdcall.Info{Target: "db", Method: "insert"}
		return again(func(n int) {
			for range n {
				if _, err := holdfast.Do(ctx, k, info, func(context.Context) (int, error) { return 1, call() }); err != nil {
					panic(err)
				}
			}
		})
	}}
}

func provider() telemetry.Metrics {
	return telemetry.Metrics{Provider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))}
}

func telemetryRows() []row {
	on := func(name string, plus float64, text string, metrics func() telemetry.Metrics) row {
		return row{
			name: name, goal: goal{text: text, times: 1, plus: plus, pace: 77, allocs: most(0)},
			contenders: []contender{watched("without", bare, nil), clocksAndAdds, watched("holdfast", kit, metrics)},
		}
	}
	return []row{
		on("telemetry, no provider", 5, "a call + 5 ns", func() telemetry.Metrics { return telemetry.Metrics{} }),
		on("telemetry, metrics", 10, "a call + 10 ns", provider),
		on("telemetry, metrics and a latency histogram", 200, "a call + 200 ns", func() telemetry.Metrics {
			m := provider()
			m.Durations = true
			return m
		}),
	}
}
