package telemetry_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/telemetry"
)

// O1, B13: whatever becomes of the breakers, no counter falls from one collection to
// the next that has it, and the sum of an instrument never does: it is what was
// counted. A breaker's own counters go on for as long as it lives.
func TestO1_NoCounterFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, checkCounters) })
}

func checkCounters(t *rapid.T) {
	store := &store{Memory: breakertest.NewMemory()}
	base := quick()
	base.Bulkhead = bulkhead.Off()
	base.Breaker.Consecutive = 1
	config := holdfast.Config{Name: "shop", Default: base}
	if rapid.Bool().Draw(t, "shared") {
		config.Shared = &breaker.Sharing{Store: store}
	}
	k, err := holdfast.New(config)
	require.NoError(t, err)
	reader := metric.NewManualReader()
	_, err = telemetry.Metrics{
		Provider: metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(0)),
		MaxKeys:  rapid.IntRange(1, 4).Draw(t, "MaxKeys"), Durations: true, AttemptDurations: true,
	}.Register(k)
	require.NoError(t, err)

	var before points
	look := func() {
		synctest.Wait()
		now := counters(t, reader)
		live := map[string]bool{}
		var truth breaker.Totals
		for key, b := range k.Breakers() {
			live[key], truth = true, truth.Plus(b.Totals())
		}
		_, evicted := k.Evicted()
		truth = truth.Plus(evicted)
		require.EqualValues(t, truth.Opens, now.of("holdfast.breaker.opens").sum())
		require.EqualValues(t, truth.Refused(), now.of("holdfast.breaker.refusals").sum())
		require.EqualValues(t, truth.Shadow.Opens, now.of("holdfast.shadow.opens").sum())
		require.EqualValues(t, truth.Shadow.Refused(), now.of("holdfast.shadow.refusals").sum())
		require.EqualValues(t, truth.ProbesSucceeded+truth.ProbesFailed+truth.ProbesExpired+truth.ProbesNeutral, now.of("holdfast.breaker.probes").sum())
		for at, v := range before {
			if n, there := now[at]; there {
				require.GreaterOrEqual(t, n, v, at)
				continue
			}
			require.Contains(t, at, "breaker=", "a series vanished")
			if v > 0 {
				key, _, _ := strings.Cut(at[strings.Index(at, "breaker=")+len("breaker="):], ",")
				require.False(t, live[key], "%s vanished, and its breaker lives", at)
			}
		}
		before = now
	}

	info := func(t *rapid.T) call.Info {
		return call.Info{Target: rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "other", "evicted"}).Draw(t, "target"), Method: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "method"), Safety: call.ReadOnly}
	}
	t.Repeat(map[string]func(*rapid.T){
		"succeed": func(t *rapid.T) { _ = do(t.Context(), k, info(t), nil) },
		"fail":    func(t *rapid.T) { _ = do(t.Context(), k, info(t), errDown) },
		"hold": func(t *rapid.T) {
			at := info(t)
			go func() {
				_, _ = holdfast.Do(context.Background(), k, at, func(context.Context) (int, error) { time.Sleep(time.Second); return 1, errDown })
			}()
		},
		"wait": func(t *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 40).Draw(t, "tenths")) * 100 * time.Millisecond)
		},
		"force": func(t *rapid.T) {
			forced := rapid.Bool().Draw(t, "open")
			for _, b := range k.Breakers() {
				if forced {
					b.ForceOpen("test")
				} else {
					b.Release()
				}
				break
			}
		},
		"update": func(t *rapid.T) {
			c := config
			own := *base.Breaker
			own.Shadow = rapid.Bool().Draw(t, "shadow")
			own.Scope = rapid.SampledFrom([]breaker.Scope{breaker.PerTarget, breaker.PerMethod, breaker.TwoLevel}).Draw(t, "scope")
			c.Default.Breaker = &own
			if rapid.Bool().Draw(t, "entry") {
				c.Methods = map[string]holdfast.Policy{"m": {Breaker: &breaker.Config{Consecutive: 2}}}
			}
			require.NoError(t, k.Update(c))
		},
		"store": func(t *rapid.T) { store.down.Store(rapid.Bool().Draw(t, "down")) },
		"look":  func(*rapid.T) { look() },
		"scrape twice": func(*rapid.T) {
			look()
			again := counters(t, reader)
			require.Equal(t, before, again, "to look changes nothing")
		},
	})
	look()
	time.Sleep(time.Minute) // the fleet comes to rest
}

// counters are the points that may not fall, histograms' counts among them.
func counters(t require.TestingT, reader metric.Reader) points {
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	p := points{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, d := range data.DataPoints {
					if data.IsMonotonic {
						p[pointName(m.Name, d.Attributes)] = float64(d.Value)
					}
				}
			case metricdata.Histogram[float64]:
				for _, d := range data.DataPoints {
					p[pointName(m.Name, d.Attributes)] = float64(d.Count)
				}
			}
		}
	}
	return p
}

// The cap again, step by step: one whose counters were together with the others' gets
// a series of its own, and the others' keeps what it had.
func TestO1_TheOthersKeepWhatTheyHaveCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Breaker.Consecutive = 1
		k := newKit(t, "shop", p)
		_, collect := meter(t, telemetry.Metrics{MaxKeys: 2}, k)
		opens := func() map[string]float64 {
			found := map[string]float64{}
			for at, v := range collect().of("holdfast.breaker.opens") {
				found[strings.TrimSuffix(strings.TrimPrefix(at, "holdfast.breaker.opens{breaker="), ",kit=shop}")] = v
			}
			return found
		}
		fail := func(target string) {
			require.Error(t, do(t.Context(), k, call.Info{Target: target, Method: "m"}, errDown))
		}
		for i := range 4 {
			require.NoError(t, do(t.Context(), k, call.Info{Target: fmt.Sprint("calm", i), Method: "m"}, nil))
		}
		require.Equal(t, map[string]float64{"calm0": 0, "calm1": 0, "other": 0}, opens())
		fail("x")
		fail("y")
		fail("z")
		require.Equal(t, map[string]float64{"x": 1, "y": 1, "other": 1}, opens())

		// Another scope drops all of them; one comes back.
		methods := p
		own := *p.Breaker
		own.Scope = breaker.PerMethod
		methods.Breaker = &own
		require.NoError(t, k.Update(holdfast.Config{Name: "shop", Default: methods}))
		require.Equal(t, map[string]float64{"evicted": 2, "other": 1}, opens())
		require.NoError(t, k.Update(holdfast.Config{Name: "shop", Default: p}))
		fail("z")
		time.Sleep(time.Second)
		fail("z")
		require.Equal(t, map[string]float64{"z": 2, "evicted": 2, "other": 1}, opens())
		require.Equal(t, 5.0, sumOf(opens()))
	})
}

func sumOf(m map[string]float64) (sum float64) {
	for v := range maps.Values(m) {
		sum += v
	}
	return sum
}
