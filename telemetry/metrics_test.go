package telemetry_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/telemetry"
)

// D086, B6: the state is what the next call would find, worked out at collection.
func TestD086_TheStateIsReadWhenCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, "shop", quick())
		_, collect := meter(t, telemetry.Metrics{}, k)
		state := func() points { return collect().of("holdfast.breaker.state") }
		at := func(word string) string { return "holdfast.breaker.state{breaker=db,kit=shop,state=" + word + "}" }
		require.NoError(t, do(t.Context(), k, read, nil))
		require.Equal(t, points{at("closed"): 1}, state())

		open(t, k, read)
		all := points{at("closed"): 0, at("open"): 1, at("half_open"): 0, at("forced_open"): 0, at("disabled"): 0}
		require.Equal(t, all, state())
		time.Sleep(time.Second)
		all[at("open")], all[at("half_open")] = 0, 1
		require.Equal(t, all, state(), "the cooldown has passed, though nobody has called")
		require.Error(t, do(t.Context(), k, read, errDown))
		all[at("open")], all[at("half_open")] = 1, 0
		require.Equal(t, all, state(), "the probe has failed")

		for _, b := range k.Breakers() {
			b.ForceOpen("test")
		}
		all[at("open")], all[at("forced_open")] = 0, 1
		require.Equal(t, all, state())
		got := collect()
		require.EqualValues(t, 2, got["holdfast.breaker.opens{breaker=db,kit=shop}"])
		require.EqualValues(t, 1, got["holdfast.breaker.probes{breaker=db,kit=shop,outcome=failed}"])
		require.EqualValues(t, 1, got["holdfast.breakers{kit=shop,state=forced_open}"])
		require.EqualValues(t, 0, got["holdfast.breakers{kit=shop,state=closed}"])
	})
}

// D087: what the kit turns away is counted by its cause, and is no attempt.
func TestD087_RefusalsAreCountedByCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		p.Retry = &retry.Policy{Backoff: retry.NoWait(), Budget: retry.Budget{Cap: 1, PerSecond: 1e-6}}
		k := newKit(t, "shop", p)
		_, collect := meter(t, telemetry.Metrics{}, k)
		refusals := func(cause string) float64 {
			return collect()["holdfast.refusals{cause="+cause+",kit=shop,method=select}"]
		}
		attempts := func() float64 { return collect().of("holdfast.attempts").where("method=select").sum() }
		ctx := t.Context()

		// The bulkhead: a call that holds its only permit, and 100 others.
		release := make(chan struct{})
		go func() {
			_, _ = holdfast.Do(ctx, k, read, func(context.Context) (int, error) { <-release; return 1, nil })
		}()
		synctest.Wait()
		for range 100 {
			require.ErrorIs(t, do(ctx, k, read, nil), bulkhead.ErrFull)
		}
		require.EqualValues(t, 100, refusals("bulkhead"))
		require.EqualValues(t, 0, attempts())
		close(release)
		synctest.Wait()
		require.EqualValues(t, 1, attempts())

		// The budget has a token for one repeat.
		require.Error(t, do(ctx, k, read, errDown))
		require.EqualValues(t, 3, attempts())
		require.EqualValues(t, 1, refusals("budget"))
		require.EqualValues(t, 1, collect()["holdfast.retry.denied{cause=budget,kit=shop,method=select}"])
		require.EqualValues(t, 1, collect()["holdfast.retry.sent{kit=shop,method=select}"])

		// The breaker.
		for range 3 {
			_ = do(ctx, k, read, errDown)
		}
		before, denied := attempts(), refusals("open")
		for range 100 {
			require.ErrorIs(t, do(ctx, k, read, nil), breaker.ErrOpen)
		}
		require.EqualValues(t, 100, refusals("open")-denied)
		require.Equal(t, before, attempts())

		// Half-open: one probe is in flight.
		time.Sleep(time.Second)
		release = make(chan struct{})
		go func() {
			_, _ = holdfast.Do(ctx, k, read, func(context.Context) (int, error) { <-release; return 1, nil })
		}()
		synctest.Wait()
		for range 100 {
			require.ErrorIs(t, do(ctx, k, read, nil), breaker.ErrOpen)
		}
		require.EqualValues(t, 100, refusals("half_open"))
		require.EqualValues(t, 100, collect()["holdfast.breaker.refusals{breaker=db,cause=half_open,kit=shop}"])
		require.Equal(t, before, attempts())
		close(release)
		synctest.Wait()

		// The caller's deadline.
		late, cancel := context.WithTimeout(ctx, -time.Second)
		defer cancel()
		for range 100 {
			require.ErrorIs(t, do(late, k, read, nil), context.DeadlineExceeded)
		}
		require.EqualValues(t, 100, refusals("expired"))
		require.Equal(t, before+1, attempts())
		require.EqualValues(t, 100, collect()["holdfast.calls{kit=shop,method=select,result=timed_out}"])
	})
}

// D088: attributes come from closed sets, whatever the URLs.
func TestD088_TenThousandURLsAreOneRoute(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{Name: "shop", Default: quick(), Methods: map[string]holdfast.Policy{"GET /items/{id}": {}}})
	require.NoError(t, err)
	_, collect := meter(t, telemetry.Metrics{Durations: true, AttemptDurations: true}, k)
	transport := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("x"))}, nil
	}), k)
	for i := range 10_000 {
		req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://user:secret@api.example.com/items/%d?token=secret%d", i, i), nil)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	got := collect()
	for _, name := range []string{"holdfast.calls", "holdfast.attempts", "holdfast.call.duration", "holdfast.attempt.duration"} {
		require.Equal(t, points{name + "{kit=shop,method=GET /items/{id},result=ok}": 10_000}, got.of(name))
	}
	require.Equal(t, points{"holdfast.breaker.opens{breaker=http://api.example.com:80,kit=shop}": 0}, got.of("holdfast.breaker.opens"))
	// H4, though somebody has put a secret where none belongs.
	require.NoError(t, do(t.Context(), k, call.Info{Target: "https://user:secret@db/?token=secret", Method: "https://user:secret@db/"}, nil))
	for at := range collect() {
		require.NotContains(t, at, "secret")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// D088, B13: an evicted key is no longer reported, and no sum falls.
func TestB13_EvictedKeysVanishAndSumsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Bulkhead = bulkhead.Off()
		k := newKit(t, "shop", p)
		_, collect := meter(t, telemetry.Metrics{MaxKeys: 20_000}, k)
		old := call.Info{Target: "old", Method: "select"}
		open(t, k, old)
		time.Sleep(time.Second)
		require.NoError(t, do(t.Context(), k, old, nil)) // the probe
		got := collect()
		require.EqualValues(t, 1, got["holdfast.breaker.opens{breaker=old,kit=shop}"])
		require.NotEmpty(t, got.of("holdfast.breaker.state").where("breaker=old"))
		require.Empty(t, got.where("breaker=evicted"))

		sums := func(p points) (all []float64) {
			for _, name := range []string{"opens", "probes", "refusals"} {
				all = append(all, p.of("holdfast.breaker."+name).sum())
			}
			return all
		}
		before := sums(got)
		require.Equal(t, []float64{1, 1, 1}, before)
		time.Sleep(time.Hour)
		for i := range breaker.DefaultMaxKeys {
			require.NoError(t, do(t.Context(), k, call.Info{Target: fmt.Sprint("host-", i), Method: "select"}, nil))
		}
		got = collect()
		require.Empty(t, got.where("breaker=old"), "it had to make room")
		require.EqualValues(t, 1, got["holdfast.breaker.opens{breaker=evicted,kit=shop}"])
		require.Equal(t, before, sums(got))
		require.EqualValues(t, breaker.DefaultMaxKeys, got["holdfast.breakers{kit=shop,state=closed}"])
	})
}

// D088: a broken method is not hidden by a healthy one.
func TestD088_ABreakerPerMethodIsVisible(t *testing.T) {
	p := quick()
	p.Breaker.Scope = breaker.PerMethod
	k := newKit(t, "shop", p)
	_, collect := meter(t, telemetry.Metrics{}, k)
	for range 50 {
		require.NoError(t, do(t.Context(), k, read, nil))
	}
	open(t, k, call.Info{Target: "db", Method: "join"})
	state := collect().of("holdfast.breaker.state")
	require.EqualValues(t, 1, state["holdfast.breaker.state{breaker=db|join,kit=shop,state=open}"])
	require.EqualValues(t, 1, state["holdfast.breaker.state{breaker=db|select,kit=shop,state=closed}"])
}

// The cap: those in trouble have series of their own, the others one.
func TestO1_KeysBeyondTheCapAreReportedTogether(t *testing.T) {
	p := quick()
	p.Bulkhead = &bulkhead.Config{Limit: 7}
	k := newKit(t, "shop", p)
	_, collect := meter(t, telemetry.Metrics{MaxKeys: 10}, k)
	for i := range 100 {
		require.NoError(t, do(t.Context(), k, call.Info{Target: fmt.Sprintf("a%02d", i)}, nil))
	}
	open(t, k, call.Info{Target: "z1"})
	open(t, k, call.Info{Target: "z2"})
	got := collect()
	require.Len(t, got.of("holdfast.breaker.opens"), 11)
	require.Len(t, got.of("holdfast.breaker.state").where("breaker=z1"), 5)
	require.EqualValues(t, 92, got["holdfast.breaker.state{breaker=other,kit=shop,state=closed}"])
	require.EqualValues(t, 100, got["holdfast.breakers{kit=shop,state=closed}"])
	require.EqualValues(t, 2, got["holdfast.breakers{kit=shop,state=open}"])
	require.EqualValues(t, 2, got.of("holdfast.breaker.opens").sum())
}

// D089: kits share a meter, registrations can be undone, and no provider is needed.
func TestD089_AnyNumberOfKitsShareAMeter(t *testing.T) {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	var kits []*holdfast.Kit
	var stops []func()
	for _, name := range []string{"a", "b", "c"} {
		k := newKit(t, name, quick())
		stop, err := telemetry.Metrics{Provider: provider, Durations: true, AttemptDurations: true}.Register(k)
		require.NoError(t, err)
		require.NoError(t, do(t.Context(), k, read, nil))
		kits, stops = append(kits, k), append(stops, stop)
	}
	got := collect(t, reader)
	for _, name := range []string{"a", "b", "c"} {
		require.EqualValues(t, 1, got["holdfast.breaker.state{breaker=db,kit="+name+",state=closed}"])
		require.EqualValues(t, 1, got["holdfast.calls{kit="+name+",method=select,result=ok}"])
		require.EqualValues(t, 1, got["holdfast.call.duration{kit="+name+",method=select,result=ok}"])
	}
	stops[0]()
	stops[0]() // again does nothing
	require.NoError(t, do(t.Context(), kits[0], read, nil))
	got = collect(t, reader)
	require.Empty(t, got.of("holdfast.breaker.state").where("kit=a"))
	require.Empty(t, got.of("holdfast.calls").where("kit=a"))
	require.EqualValues(t, 1, got["holdfast.call.duration{kit=a,method=select,result=ok}"], "no more is recorded")
	require.NotEmpty(t, got.of("holdfast.calls").where("kit=b"))

	// One registration of two kits with one name and one key: their sum.
	twin, other := newKit(t, "twin", quick()), newKit(t, "twin", quick())
	_, sum := meter(t, telemetry.Metrics{}, twin, other)
	require.NoError(t, do(t.Context(), twin, read, nil))
	require.NoError(t, do(t.Context(), other, read, nil))
	require.EqualValues(t, 2, sum()["holdfast.breaker.state{breaker=db,kit=twin,state=closed}"])

	// No provider, be it nil or the global one that nobody has set.
	for _, m := range []telemetry.Metrics{{}, {Provider: otel.GetMeterProvider(), Durations: true}} {
		k := newKit(t, "alone", quick())
		stop, err := m.Register(k)
		require.NoError(t, err)
		require.NoError(t, do(t.Context(), k, read, nil))
		stop()
	}
}

func TestBadMetricsAreRefused(t *testing.T) {
	_, err := telemetry.Metrics{MaxKeys: -1}.Register()
	require.ErrorContains(t, err, "Metrics.MaxKeys = -1")
	_, err = telemetry.Metrics{MaxMethods: -2}.Register()
	require.EqualError(t, err, "telemetry: Metrics.MaxMethods = -2: must not be negative; zero is 150")
	_, err = telemetry.Metrics{}.Register(nil)
	require.ErrorContains(t, err, "kit is nil")
}

// TestO1: bulkheads, budgets, hedges and fallbacks.
func TestO1_TheOtherLayersAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 2, Queue: 2}
		p.Retry = &retry.Policy{Hedge: retry.Hedge{Delay: 10 * time.Millisecond}}
		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return 7, nil }}
		k := newKit(t, "shop", p)
		_, collect := meter(t, telemetry.Metrics{Durations: true, AttemptDurations: true}, k)
		ctx := t.Context()

		var tries atomic.Int32
		_, err := holdfast.Do(ctx, k, read, func(ctx context.Context) (int, error) {
			if tries.Add(1) == 1 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 1, nil
		})
		require.NoError(t, err)
		got := collect()
		require.EqualValues(t, 1, got["holdfast.hedge.sent{kit=shop,method=select}"])
		require.EqualValues(t, 1, got["holdfast.hedge.won{kit=shop,method=select}"])
		require.EqualValues(t, 1, got["holdfast.attempts{kit=shop,method=select,result=canceled}"])
		require.InDelta(t, 9.4, got["holdfast.budget.tokens{budget=db,kit=shop}"], 0.2)
		require.Empty(t, got.of("holdfast.bulkhead.in_use"), "none is in use")

		write := call.Info{Target: "db", Method: "insert"}
		release := make(chan struct{})
		for range 3 {
			go func() {
				_, _ = holdfast.Do(ctx, k, write, func(context.Context) (int, error) { <-release; return 1, nil })
			}()
		}
		synctest.Wait()
		got = collect()
		require.EqualValues(t, 2, got["holdfast.bulkhead.in_use{bulkhead=db,kit=shop}"])
		require.EqualValues(t, 1, got["holdfast.bulkhead.waiting{bulkhead=db,kit=shop}"])
		require.EqualValues(t, 2, got["holdfast.bulkhead.limit{bulkhead=db,kit=shop}"])
		time.Sleep(20 * time.Millisecond)
		close(release)
		synctest.Wait()
		got = collect()
		inserted := func(histogram string) []float64 {
			at := "{kit=shop,method=insert,result=ok}"
			return []float64{got[histogram+at], got[histogram+" sum"+at]}
		}
		require.Equal(t, []float64{1, 0.02}, inserted("holdfast.bulkhead.wait.duration"), "how many, and seconds")
		require.Equal(t, []float64{3, 0.04}, inserted("holdfast.attempt.duration"))
		require.Equal(t, []float64{3, 0.06}, inserted("holdfast.call.duration"))

		require.NoError(t, do(ctx, k, read, errDown))
		got = collect()
		require.EqualValues(t, 1, got["holdfast.fallback.served{kit=shop,method=select}"])
		require.EqualValues(t, 1, got["holdfast.call.duration{kit=shop,method=select,result=server_fault}"], got.of("holdfast.call.duration"))
	})
}
