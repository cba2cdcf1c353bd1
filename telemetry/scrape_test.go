package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
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
	"go.yaml.in/yaml/v3"

	exporter "go.opentelemetry.io/otel/exporters/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
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
		k, err := holdfast.New(holdfast.Config{Name: "shop", Default: p, Methods: map[string]holdfast.Policy{"hedged": hedged}})
		require.NoError(t, err)
		scrape := scraped(t, telemetry.Metrics{Durations: true, AttemptDurations: true}, k)
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
		open(t, k, call.Info{Target: "moving"})
		for key, b := range k.Breakers() {
			if key == "moving" {
				b.ForceOpen("test")
			}
		}
		text = scrape()
		close(hang)
		synctest.Wait()
	})
	return text
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
		"holdfast_calls_total":            dto.MetricType_COUNTER, "holdfast_attempts_total": dto.MetricType_COUNTER,
		"holdfast_refusals_total": dto.MetricType_COUNTER, "holdfast_retry_sent_total": dto.MetricType_COUNTER,
		"holdfast_retry_denied_total": dto.MetricType_COUNTER, "holdfast_hedge_sent_total": dto.MetricType_COUNTER,
		"holdfast_hedge_won_total": dto.MetricType_COUNTER, "holdfast_fallback_served_total": dto.MetricType_COUNTER,
		"holdfast_bulkhead_in_use": dto.MetricType_GAUGE, "holdfast_bulkhead_waiting": dto.MetricType_GAUGE,
		"holdfast_bulkhead_limit": dto.MetricType_GAUGE, "holdfast_budget_tokens": dto.MetricType_GAUGE,
		"holdfast_call_duration_seconds": dto.MetricType_HISTOGRAM, "holdfast_attempt_duration_seconds": dto.MetricType_HISTOGRAM,
		"holdfast_bulkhead_wait_duration_seconds": dto.MetricType_HISTOGRAM,
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

// Every metric, label and word that the dashboard and the alert rules name is in a
// real scrape.
func TestO1_DashboardAndAlertsNameWhatExists(t *testing.T) {
	families := parsed(t, eventful(t))
	exprs := append(dashboardQueries(t), alertQueries(t)...)
	require.Greater(t, len(exprs), 25)
	selector := regexp.MustCompile(`(holdfast_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`([a-z_]+)(=~|=)"([^"]*)"`)
	words := map[string]bool{} // that may be rare, but are of closed sets
	for _, s := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.ForcedOpen, breaker.Disabled} {
		words[s.String()] = true
	}
	for c := call.OK; c.Valid(); c++ {
		words[c.String()] = true
	}
	named := map[string]bool{}
	for _, expr := range exprs {
		found := selector.FindAllStringSubmatch(expr, -1)
		require.NotEmpty(t, found, expr)
		for _, m := range found {
			name := strings.TrimSuffix(m[1], "_bucket")
			family := families[name]
			require.NotNil(t, family, "%s in %s", name, expr)
			named[name] = true
			for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
				if strings.HasPrefix(label[3], "$") {
					continue
				}
				for word := range strings.SplitSeq(label[3], "|") {
					require.True(t, words[word] || has(family, label[1], word), "%s{%s=%q} in %s", name, label[1], word, expr)
				}
			}
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "holdfast_") {
			require.True(t, named[name], "neither shows %s", name)
		}
	}
}

func has(f *dto.MetricFamily, label, value string) bool {
	for _, m := range f.Metric {
		if labelsOf(m)[label] == value {
			return true
		}
	}
	return false
}

func dashboardQueries(t *testing.T) (exprs []string) {
	t.Helper()
	raw, err := os.ReadFile("dashboards/grafana.json")
	require.NoError(t, err)
	var dashboard struct {
		Title  string
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	for _, p := range dashboard.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if query := fmt.Sprint(v.Query); strings.Contains(query, "holdfast_") {
			exprs = append(exprs, query)
		}
	}
	return exprs
}

func alertQueries(t *testing.T) (exprs []string) {
	t.Helper()
	raw, err := os.ReadFile("dashboards/alerts.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			require.NotEmpty(t, r.Alert)
			require.NotEmpty(t, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			if r.For != "" {
				_, err := model.ParseDuration(r.For)
				require.NoError(t, err, r.Alert)
			}
			exprs = append(exprs, r.Expr)
		}
	}
	return exprs
}
