package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/telemetry"
)

// classes lets the calls of a kit end with any class: the one that is in their error.
func classes() holdfast.Policy {
	p := quick()
	p.Breaker = breaker.Off()
	p.Bulkhead = bulkhead.Off()
	p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result {
		var as classError
		if errors.As(res.Err, &as) {
			res.Class = call.Class(as)
		}
		return res
	}
	return p
}

type classError call.Class

func (e classError) Error() string { return call.Class(e).String() }

// O1: with every limit used up, every method ending in every way and every breaker in
// trouble, one kit's series stay within the SDK's own limit, and none is lost in its
// overflow: of a method that has series all are there.
func TestO1_TheDefaultsStayWithinTheLimitOfTheSDK(t *testing.T) {
	p := classes()
	p.Breaker = &breaker.Config{Consecutive: 4, Jitter: breaker.NoJitter, Scope: breaker.PerMethod}
	p.Bulkhead = &bulkhead.Config{Limit: 1000, Scope: bulkhead.PerMethod}
	k := newKit(t, "shop", p)
	reader := metric.NewManualReader()
	_, err := telemetry.Metrics{Provider: metric.NewMeterProvider(metric.WithReader(reader)), Durations: true, AttemptDurations: true}.Register(k)
	require.NoError(t, err)
	const methods = 1100 // more than a kit counts apart
	for i := range methods {
		info := call.Info{Target: "db", Method: fmt.Sprintf("m%04d", i)}
		for class := call.OK; class.Valid(); class++ {
			if class != call.Refused {
				_ = do(t.Context(), k, info, classError(class))
			}
		}
		require.Error(t, do(t.Context(), k, info, classError(call.ServerFault)))
		require.ErrorIs(t, do(t.Context(), k, info, nil), breaker.ErrOpen)
	}
	all := collect(t, reader)
	for at := range all {
		require.NotContains(t, at, "otel.metric.overflow")
	}
	// The arithmetic of docs/operations.md.
	require.Len(t, all.of("holdfast.calls"), 9*(150+1))
	require.Len(t, all.of("holdfast.call.duration"), 9*(150+1))
	require.Len(t, all.of("holdfast.breaker.state").where("state=open"), 300+1)
	operations, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(string(operations)), " "), fmt.Sprintf("%d × (`MaxMethods` + 1) (`holdfast.refusals`)", len(holdfast.Causes())))
	truth := 0.0
	for _, tally := range k.Tallies() {
		for class := call.OK; class.Valid(); class++ {
			truth += float64(tally.Calls(class))
		}
	}
	require.Equal(t, truth, all.of("holdfast.calls").sum())
	require.Equal(t, truth, all.of("holdfast.call.duration").sum())
	require.NotZero(t, all.where("method=other").of("holdfast.calls").sum())
	require.Empty(t, all.where("method="+breaker.OverflowKey))
}

// O1: of more methods than have series of their own those that are called most have
// them; both kinds of instrument agree on which; and a method keeps what it has.
func TestO1_MethodsBeyondTheLimitAreReportedTogether(t *testing.T) {
	k := newKit(t, "shop", classes())
	_, collect := meter(t, telemetry.Metrics{MaxMethods: 2}, k)
	calls := func(method string, n int) {
		for range n {
			require.NoError(t, do(t.Context(), k, call.Info{Target: "db", Method: method}, nil))
		}
	}
	seen := func() points { return collect().of("holdfast.calls") }
	at := func(method string) string { return "holdfast.calls{kit=shop,method=" + method + ",result=ok}" }
	calls("a", 1)
	calls("b", 5)
	calls("c", 3)
	require.Equal(t, points{at("b"): 5, at("c"): 3, at("other"): 1}, seen())
	calls("a", 100)
	calls("d", 1)
	require.Equal(t, points{at("b"): 5, at("c"): 3, at("other"): 102}, seen())

	both := newKit(t, "shop", classes())
	_, collect = meter(t, telemetry.Metrics{MaxMethods: 1, Durations: true}, both)
	k = both
	calls("a", 1)
	calls("b", 5)
	got := collect()
	for _, name := range []string{"holdfast.calls", "holdfast.call.duration"} {
		require.Equal(t, points{name + "{kit=shop,method=a,result=ok}": 1, name + "{kit=shop,method=other,result=ok}": 5}, got.of(name))
	}
}

// O1: whatever methods come, no series falls or vanishes, and the sums are what was
// counted.
func TestO1_NoMethodsCounterFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, err := holdfast.New(holdfast.Config{Name: "shop", Default: classes()})
		require.NoError(t, err)
		reader := metric.NewManualReader()
		_, err = telemetry.Metrics{
			Provider: metric.NewMeterProvider(metric.WithReader(reader)), MaxMethods: rapid.IntRange(1, 4).Draw(t, "MaxMethods"), Durations: rapid.Bool().Draw(t, "Durations"),
		}.Register(k)
		require.NoError(t, err)
		made, before := 0, points{}
		for _, method := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "other", "overflow", "look"}), 1, 40).Draw(t, "methods") {
			if method != "look" {
				class := call.Class(rapid.IntRange(int(call.OK), int(call.Permanent)).Draw(t, "class"))
				_ = do(context.Background(), k, call.Info{Target: "db", Method: method}, classError(class))
				made++
				continue
			}
			now := counters(t, reader)
			require.EqualValues(t, made, now.of("holdfast.calls").sum())
			require.Subset(t, slices.Collect(maps.Keys(now)), slices.Collect(maps.Keys(before)))
			for at, v := range before {
				require.GreaterOrEqual(t, now[at], v, at)
			}
			before = now
		}
	})
}
