package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"

	exporter "go.opentelemetry.io/otel/exporters/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/telemetry"
)

// scraped registers kits with a Prometheus exporter, and returns what scrapes it
// over HTTP.
func scraped(t testing.TB, m telemetry.Metrics, kits ...*holdfast.Kit) func() string {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	require.NoError(t, err)
	m.Provider = metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(0))
	_, err = m.Register(kits...)
	require.NoError(t, err)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return func() string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		require.Equal(t, 200, w.Code)
		return w.Body.String()
	}
}

func parsed(t testing.TB, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// eventful returns the scrape of a kit to which everything has happened.
func eventful(t *testing.T) (text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1, MaxWait: 5 * time.Millisecond}
		p.Retry = &retry.Policy{MaxAttempts: 3, Backoff: retry.NoWait(), Budget: retry.Budget{Cap: 2, PerSecond: 0.1}}
		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return 7, nil }}
		hedged := p
		hedged.Bulkhead = bulkhead.Off()
		hedged.Retry = &retry.Policy{Hedge: retry.Hedge{Delay: time.Millisecond}}
		shared := &store{Memory: breakertest.NewMemory()}
		k, err := holdfast.New(holdfast.Config{
			Name: "shop", Default: p, Methods: map[string]holdfast.Policy{"hedged": hedged, "shadow": shadow()}, Shared: &breaker.Sharing{Store: shared},
		})
		require.NoError(t, err)
		web := newKit(t, "shop", holdfast.Policy{Retry: retry.Off(), Fallback: &fallback.Policy{Stale: &fallback.Stale{
			Store: newCache(t), Identity: fallback.SharedByAll,
		}}})
		scrape := scraped(t, telemetry.Metrics{Durations: true, AttemptDurations: true}, k, web)
		ctx := t.Context()
		slow := func(ctx context.Context) (int, error) { time.Sleep(20 * time.Millisecond); return 1, nil }
		for _, method := range []string{"select", "hedged", "insert"} {
			for range 3 {
				go func() {
					_, _ = holdfast.Do(ctx, k, call.Info{Target: "db", Method: method, Safety: call.ReadOnly}, slow)
				}()
			}
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		hang := make(chan struct{})
		go func() {
			_, _ = holdfast.Do(ctx, k, call.Info{Target: "stuck", Method: "select"}, func(context.Context) (int, error) { <-hang; return 1, nil })
		}()
		synctest.Wait()
		for range 20 {
			_ = do(ctx, k, read, errDown)
		}
		for range 3 {
			time.Sleep(time.Second)
			_ = do(ctx, k, read, errDown)
		}
		fail(t, k, call.Info{Target: "db", Method: "shadow"})
		open(t, k, call.Info{Target: "moving"})
		for key, b := range k.Breakers() {
			if key == "moving" {
				b.ForceOpen("test")
			}
		}
		browse(t, web)
		shared.down.Store(true)
		time.Sleep(3 * time.Second)
		_ = do(ctx, k, read, errDown)
		synctest.Wait()
		text = scrape()
		close(hang)
		synctest.Wait()
	})
	return text
}

// browse moves a kit's requests to another upstream, and then lets the cache answer.
func browse(t *testing.T, k *holdfast.Kit) {
	down := false
	transport, err := httpmw.Failover(wire(func(req *http.Request) (*http.Response, error) {
		if down || req.URL.Host == "a.test" {
			return answer(req, http.StatusServiceUnavailable), nil
		}
		return answer(req, http.StatusOK), nil
	}), k, []httpmw.Upstream{{Name: "a", URL: "http://a.test"}, {Name: "b", URL: "http://b.test"}})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, fetch(t, transport, "http://a.test/x").StatusCode)
	down = true
	time.Sleep(time.Second)
	require.Equal(t, http.StatusOK, fetch(t, transport, "http://a.test/x").StatusCode)
}

// The scrape parses, and has the names and types that are documented.
func TestO1_APrometheusScrape(t *testing.T) {
	families := parsed(t, eventful(t))
	types := map[string]dto.MetricType{}
	for name, f := range families {
		if strings.HasPrefix(name, "holdfast_") {
			types[name] = f.GetType()
		}
	}
	require.Equal(t, map[string]dto.MetricType{
		"holdfast_breaker_state": dto.MetricType_GAUGE, "holdfast_breakers": dto.MetricType_GAUGE,
		"holdfast_breaker_opens_total": dto.MetricType_COUNTER, "holdfast_breaker_probes_total": dto.MetricType_COUNTER,
		"holdfast_breaker_refusals_total": dto.MetricType_COUNTER,
		"holdfast_shadow_state":           dto.MetricType_GAUGE, "holdfast_shadow_opens_total": dto.MetricType_COUNTER,
		"holdfast_shadow_probes_total": dto.MetricType_COUNTER, "holdfast_shadow_refusals_total": dto.MetricType_COUNTER,
		"holdfast_calls_total": dto.MetricType_COUNTER, "holdfast_attempts_total": dto.MetricType_COUNTER,
		"holdfast_refusals_total": dto.MetricType_COUNTER, "holdfast_retry_sent_total": dto.MetricType_COUNTER,
		"holdfast_retry_denied_total": dto.MetricType_COUNTER, "holdfast_hedge_sent_total": dto.MetricType_COUNTER,
		"holdfast_hedge_won_total": dto.MetricType_COUNTER, "holdfast_fallback_served_total": dto.MetricType_COUNTER,
		"holdfast_bulkhead_in_use": dto.MetricType_GAUGE, "holdfast_bulkhead_waiting": dto.MetricType_GAUGE,
		"holdfast_bulkhead_limit": dto.MetricType_GAUGE, "holdfast_budget_tokens": dto.MetricType_GAUGE,
		"holdfast_call_duration_seconds": dto.MetricType_HISTOGRAM, "holdfast_attempt_duration_seconds": dto.MetricType_HISTOGRAM,
		"holdfast_bulkhead_wait_duration_seconds": dto.MetricType_HISTOGRAM,
		"holdfast_failover_sent_total":            dto.MetricType_COUNTER, "holdfast_fallback_age_seconds": dto.MetricType_HISTOGRAM,
		"holdfast_store_answering": dto.MetricType_GAUGE, "holdfast_store_failures_total": dto.MetricType_COUNTER,
		"holdfast_store_probes_total": dto.MetricType_COUNTER,
	}, types)
	states := map[string]float64{}
	for _, m := range families["holdfast_breaker_state"].Metric {
		labels := labelsOf(m)
		states[labels["breaker"]+" "+labels["state"]] = m.Gauge.GetValue()
		require.Equal(t, "shop", labels["kit"])
	}
	require.EqualValues(t, 1, states["db open"])
	require.EqualValues(t, 1, states["moving forced_open"])
	require.EqualValues(t, 1, states["stuck closed"])
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.Label {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}
