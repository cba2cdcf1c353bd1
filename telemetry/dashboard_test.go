package telemetry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/telemetry"
)

// Every metric, label and word that the dashboard and the alert rules name is in a
// real scrape.
func TestO1_DashboardAndAlertsNameWhatExists(t *testing.T) {
	families := parsed(t, eventful(t))
	exprs := append(dashboardQueries(t), alertQueries(t)...)
	require.Greater(t, len(exprs), 35)
	matcher := regexp.MustCompile(`([a-z_]+)(=~|=)"([^"]*)"`)
	words := map[string]bool{} // that may be rare, but are of closed sets
	for _, s := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.ForcedOpen, breaker.Disabled} {
		words[s.String()] = true
	}
	for c := call.OK; c.Valid(); c++ {
		words[c.String()] = true
	}
	for _, expr := range exprs {
		found := selector.FindAllStringSubmatch(expr, -1)
		require.NotEmpty(t, found, expr)
		for _, m := range found {
			name := strings.TrimSuffix(m[1], "_bucket")
			family := families[name]
			require.NotNil(t, family, "%s in %s", name, expr)
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
}

// selector finds a metric, and what is asked of its labels, in a query.
var selector = regexp.MustCompile(`(holdfast_[a-z_]+)(?:\{([^}]*)\})?`)

// leftOut are the metrics that the dashboard does not show, each with the reason.
var leftOut = map[string]string{}

// Every metric that is exported is in the scrape that the other tests go by, in the
// package's documentation, and on the dashboard.
func TestO1_TheDashboardShowsEveryMetric(t *testing.T) {
	var made instruments
	_, err := telemetry.Metrics{Provider: &made, Durations: true, AttemptDurations: true}.Register(newKit(t, "shop", quick()))
	require.NoError(t, err)
	require.Greater(t, len(made.names), 20)
	documentation, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	families := parsed(t, eventful(t))
	shown := map[string]bool{}
	for _, expr := range dashboardQueries(t) {
		for _, m := range selector.FindAllStringSubmatch(expr, -1) {
			shown[strings.TrimSuffix(m[1], "_bucket")] = true
		}
	}
	for _, name := range made.names {
		require.Contains(t, string(documentation), "//\t"+name+" ", "the documentation has it")
		family := ""
		for _, suffix := range []string{"", "_total", "_seconds"} {
			if at := strings.ReplaceAll(name, ".", "_") + suffix; families[at] != nil {
				family = at
			}
		}
		require.NotEmpty(t, family, "the scrape has %s", name)
		_, out := leftOut[family]
		require.NotEqual(t, out, shown[family], "%s is on the dashboard, or left out with a reason", family)
	}
}

// instruments is a provider that notes which instruments are made.
type instruments struct {
	noop.MeterProvider
	names []string
}

func (in *instruments) Meter(string, ...metric.MeterOption) metric.Meter { return &noting{in: in} }

type noting struct {
	noop.Meter
	in *instruments
}

func (n *noting) note(name string) { n.in.names = append(n.in.names, name) }

func (n *noting) Int64ObservableCounter(name string, o ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	n.note(name)
	return n.Meter.Int64ObservableCounter(name, o...)
}

func (n *noting) Int64ObservableUpDownCounter(name string, o ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	n.note(name)
	return n.Meter.Int64ObservableUpDownCounter(name, o...)
}

func (n *noting) Float64ObservableUpDownCounter(name string, o ...metric.Float64ObservableUpDownCounterOption) (metric.Float64ObservableUpDownCounter, error) {
	n.note(name)
	return n.Meter.Float64ObservableUpDownCounter(name, o...)
}

func (n *noting) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	n.note(name)
	return n.Meter.Float64Histogram(name, o...)
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
