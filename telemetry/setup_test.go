package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/telemetry"
	"github.com/holdfast-go/holdfast/timeout"
)

var errDown = errors.New("the dependency is down")

// quick is a policy whose breaker opens after five failures in a row for a second,
// with one attempt.
func quick() holdfast.Policy {
	return holdfast.Policy{
		Retry:    retry.Off(),
		Timeout:  timeout.Off(),
		Breaker:  &breaker.Config{Consecutive: 5, Cooldown: time.Second, CooldownFactor: 1, Jitter: breaker.NoJitter, ProbeSuccesses: 1},
		Bulkhead: &bulkhead.Config{Limit: 10},
	}
}

func newKit(t testing.TB, name string, p holdfast.Policy) *holdfast.Kit {
	t.Helper()
	k, err := holdfast.New(holdfast.Config{Name: name, Default: p})
	require.NoError(t, err)
	return k
}

var read = call.Info{Target: "db", Method: "select", Safety: call.ReadOnly}

// do makes a call that ends with err.
func do(ctx context.Context, k *holdfast.Kit, info call.Info, err error) error {
	_, got := holdfast.Do(ctx, k, info, func(context.Context) (int, error) { return 1, err })
	return got
}

func open(t testing.TB, k *holdfast.Kit, info call.Info) {
	t.Helper()
	for range 5 {
		require.Error(t, do(context.Background(), k, info, errDown))
	}
	require.ErrorIs(t, do(context.Background(), k, info, nil), breaker.ErrOpen)
}

// meter registers kits with a provider of their own, and returns what collects.
func meter(t testing.TB, m telemetry.Metrics, kits ...*holdfast.Kit) (stop func(), read func() points) {
	t.Helper()
	reader := metric.NewManualReader()
	m.Provider = metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(0))
	stop, err := m.Register(kits...)
	require.NoError(t, err)
	return stop, func() points { return collect(t, reader) }
}

// points are what a collection has brought: values by name and attributes, such as
// "holdfast.calls{kit=shop,method=select,result=ok}". Of a histogram it is the
// count, and under its name with " sum" the sum.
type points map[string]float64

func collect(t testing.TB, reader metric.Reader) points {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	p := points{}
	put := func(name string, set attribute.Set, v float64) { p[pointName(name, set)] = v }
	for _, scope := range all.ScopeMetrics {
		require.Equal(t, telemetry.ScopeName, scope.Scope.Name)
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, d := range data.DataPoints {
					put(m.Name, d.Attributes, float64(d.Value))
				}
			case metricdata.Sum[float64]:
				for _, d := range data.DataPoints {
					put(m.Name, d.Attributes, d.Value)
				}
			case metricdata.Histogram[float64]:
				for _, d := range data.DataPoints {
					put(m.Name, d.Attributes, float64(d.Count))
					put(m.Name+" sum", d.Attributes, d.Sum)
				}
			default:
				t.Fatalf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	return p
}

func pointName(name string, set attribute.Set) string {
	var pairs []string
	for _, kv := range set.ToSlice() {
		pairs = append(pairs, fmt.Sprintf("%s=%s", kv.Key, kv.Value.String()))
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// of returns the points of one instrument.
func (p points) of(name string) points {
	found := points{}
	for at, v := range p {
		if strings.HasPrefix(at, name+"{") {
			found[at] = v
		}
	}
	return found
}

// where returns the points whose attributes have one.
func (p points) where(pair string) points {
	found := points{}
	for at, v := range p {
		_, attrs, _ := strings.Cut(strings.TrimSuffix(at, "}"), "{")
		if slices.Contains(strings.Split(attrs, ","), pair) {
			found[at] = v
		}
	}
	return found
}

func (p points) sum() (sum float64) {
	for _, v := range p {
		sum += v
	}
	return sum
}
