package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/telemetry"
)

// sessions stands for what knows a program's operators.
var sessions operators

type operators struct{}

func (operators) OperatorOf(r *http.Request) (string, error) {
	if name, password, ok := r.BasicAuth(); ok && password == "right" {
		return name, nil
	}
	return "", errors.New("no operator")
}

// All that there is, for one kit.
func Example() {
	kit, err := holdfast.New(holdfast.Config{Name: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	stopMetrics, err := telemetry.Metrics{}.Register(kit) // OpenTelemetry's global provider
	if err != nil {
		log.Fatal(err)
	}
	defer stopMetrics()
	stopTraces := telemetry.Traces{}.Attach(kit)
	defer stopTraces()
	stopLogs := telemetry.Logs{Logger: slog.Default()}.Attach(kit)
	defer stopLogs()
	page := telemetry.Page(kit)
	http.Handle("/debug/holdfast", page) // on an internal address
	fmt.Println(kit.Name())
	// Output: shop
}

func ExampleOperations_Control() {
	kit, err := holdfast.New(holdfast.Config{Name: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	page := telemetry.Page(kit)
	page.Control(func(r *http.Request) (operator string, err error) {
		return sessions.OperatorOf(r) // an error: may look, but not act
	})
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 403 You may look, but not act.
}

func ExampleLogs_Attach() {
	kit, err := holdfast.New(holdfast.Config{Name: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	withoutTime := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	defer telemetry.Logs{Logger: slog.New(slog.NewTextHandler(os.Stdout, withoutTime))}.Attach(kit)()
	_, _ = holdfast.Do(context.Background(), kit, call.Info{Target: "db", Method: "select"}, func(context.Context) (int, error) { return 1, nil })
	for _, b := range kit.Breakers() {
		b.ForceOpen("the database moves")
	}
	// Output: level=INFO msg="holdfast: breaker forced open" breaker=db from=closed to=forced_open reason=forced note="the database moves" results=1 failures=0 kit=shop
}

// For Prometheus: its exporter reads the metrics when /metrics is asked for.
func ExampleMetrics_prometheus() {
	kit, err := holdfast.New(holdfast.Config{Name: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()                           // github.com/prometheus/client_golang/prometheus
	reader, err := exporter.New(exporter.WithRegisterer(registry)) // go.opentelemetry.io/otel/exporters/prometheus
	if err != nil {
		log.Fatal(err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader)) // go.opentelemetry.io/otel/sdk/metric
	stop, err := telemetry.Metrics{Provider: provider}.Register(kit)
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{})) // .../client_golang/prometheus/promhttp

	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "holdfast_breakers{") && strings.Contains(line, `state="closed"`) {
			fmt.Println(line[:strings.Index(line, ",otel")], line[strings.LastIndex(line, " ")+1:])
		}
	}
	// Output: holdfast_breakers{kit="shop" 0
}
