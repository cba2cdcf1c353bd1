package telemetry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/telemetry"
)

// shadow is the policy quick with a breaker that refuses nothing.
func shadow() holdfast.Policy {
	p := quick()
	p.Breaker.Shadow = true
	return p
}

// fail makes a shadow open, and one call that it would have refused.
func fail(t testing.TB, k *holdfast.Kit, info call.Info) {
	t.Helper()
	for range 5 {
		require.ErrorIs(t, do(t.Context(), k, info, errDown), errDown)
	}
	require.NoError(t, do(t.Context(), k, info, nil))
}

// B10, O1: what a shadow would have done is in series of its own, and those that say
// who is cut off know nothing of it; also when a breaker becomes a shadow.
func TestB10_MetricsKeepShadowsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, "shop", shadow())
		_, collect := meter(t, telemetry.Metrics{}, k)
		require.NoError(t, do(t.Context(), k, read, nil))
		require.Equal(t, points{"holdfast.shadow.opens{breaker=db,kit=shop}": 0}, collect().of("holdfast.shadow.opens"))
		fail(t, k, read)
		got := collect()
		require.Equal(t, points{}, got.of("holdfast.breaker.state"))
		require.Zero(t, got.of("holdfast.breakers").sum())
		require.Zero(t, got.of("holdfast.breaker.opens").sum()+got.of("holdfast.breaker.refusals").sum()+got.of("holdfast.refusals").sum())
		at := func(word string) string { return "holdfast.shadow.state{breaker=db,kit=shop,state=" + word + "}" }
		require.Equal(t, points{at("closed"): 0, at("open"): 1, at("half_open"): 0, at("forced_open"): 0, at("disabled"): 0}, got.of("holdfast.shadow.state"))
		require.EqualValues(t, 1, got["holdfast.shadow.opens{breaker=db,kit=shop}"])
		require.EqualValues(t, 1, got["holdfast.shadow.refusals{breaker=db,cause=open,kit=shop}"])
		time.Sleep(time.Second)
		require.Error(t, do(t.Context(), k, read, errDown))
		require.EqualValues(t, 1, collect()["holdfast.shadow.probes{breaker=db,kit=shop,outcome=failed}"])
		require.Zero(t, collect().of("holdfast.breaker.probes").sum())

		// From now on it refuses.
		require.NoError(t, k.Update(holdfast.Config{Default: quick()}))
		require.ErrorIs(t, do(t.Context(), k, read, nil), breaker.ErrOpen)
		got = collect()
		require.Equal(t, points{}, got.of("holdfast.shadow.state"))
		require.EqualValues(t, 1, got["holdfast.breaker.state{breaker=db,kit=shop,state=open}"])
		require.EqualValues(t, 1, got["holdfast.breakers{kit=shop,state=open}"])
		require.EqualValues(t, 1, got["holdfast.breaker.refusals{breaker=db,cause=open,kit=shop}"])
		require.Zero(t, got["holdfast.breaker.opens{breaker=db,kit=shop}"], "it was the shadow that opened")
		require.EqualValues(t, 2, got["holdfast.shadow.opens{breaker=db,kit=shop}"])
		require.NoError(t, k.Update(holdfast.Config{Default: shadow()}))
		require.EqualValues(t, 1, collect()["holdfast.breaker.refusals{breaker=db,cause=open,kit=shop}"])
	})
}

// B10: the alert rules and the dashboard's panels see no breaker in trouble where a
// shadow alone is, but for the panel that is about shadows.
func TestB10_NoAlertIsOfAShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, "shop", shadow())
		scrape := scraped(t, telemetry.Metrics{}, k)
		for range 10 {
			fail(t, k, read)
			time.Sleep(time.Second)
		}
		text := scrape()
		require.Contains(t, text, `holdfast_shadow_state{breaker="db",kit="shop"`)
		seen := 0
		for _, expr := range append(alertQueries(t), dashboardQueries(t)...) {
			if strings.Contains(expr, "holdfast_shadow_") {
				continue
			}
			for name, family := range parsed(t, text) {
				if !strings.Contains(expr, name) || !strings.HasPrefix(name, "holdfast_breaker") {
					continue
				}
				for _, m := range family.Metric {
					seen++
					require.Zero(t, m.GetGauge().GetValue()+m.GetCounter().GetValue(), "%s sees %v of %s", expr, m, name)
				}
			}
		}
		require.NotZero(t, seen)
		for _, expr := range alertQueries(t) {
			require.NotContains(t, expr, "holdfast_shadow_")
		}
	})
}

// B10: the page says of a shadow what it would do, and counts it with nobody.
func TestB10_ThePageSaysWhatAShadowWouldDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, "shop", shadow())
		page := telemetry.Page(k)
		defer page.Close()
		text := func() string { return shownText(get(t, page, "/").Body.String()) }
		require.NoError(t, do(t.Context(), k, read, nil))
		require.Contains(t, text(), "No breaker refuses calls: all are shadows.")
		fail(t, k, read)
		for range 3 {
			require.NoError(t, do(t.Context(), k, read, nil))
		}
		time.Sleep(400 * time.Millisecond)
		now := text()
		for _, want := range []string{
			"No breaker refuses calls: all are shadows. A shadow would refuse its calls.",
			"would be open shadow: refuses nothing db", "would have been cut off for 400 ms: failures in a row",
			"4 calls would have been turned away since then · would have opened 1 ×",
			"db shadow closed → open: failures in a row",
		} {
			require.Contains(t, now, want)
		}
		require.NotContains(t, get(t, page, "/").Body.String(), "<title>(1)")
		v := decode(t, page, "/")
		require.Equal(t, map[string]int{"open": 0, "closed": 0, "half_open": 0, "forced_open": 0, "disabled": 0}, v.States)
		require.Equal(t, map[string]int{"open": 1, "closed": 0, "half_open": 0, "forced_open": 0, "disabled": 0}, v.Shadows)
		require.EqualValues(t, []uint64{1, 4, 4}, []uint64{v.Breakers[0].Opens, v.Breakers[0].Refused, v.Breakers[0].RefusedSince})

		fail(t, k, call.Info{Target: "search", Method: "select"})
		require.Contains(t, text(), "2 shadows would refuse their calls.")
		time.Sleep(2 * time.Second)
		require.NoError(t, do(t.Context(), k, read, nil))
		now = text()
		require.Contains(t, now, "db shadow · would have opened 1 × ·")

		// Beside one that refuses.
		real := newKit(t, "mail", quick())
		both := telemetry.Page(k, real)
		defer both.Close()
		open(t, real, read)
		now = shownText(get(t, both, "/").Body.String())
		require.Contains(t, now, "The breaker is not closed. A shadow would refuse its calls.")
		require.Contains(t, now, "1 s left of 1 s 1 call turned away since then · opened 1 ×")
		require.Equal(t, "mail", decode(t, both, "/").Breakers[0].Kit, "who refuses comes first")
	})
}

// B10: a shadow is no reason to wake anybody.
func TestB10_LogsMarkAShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, "shop", shadow())
		var buf bytes.Buffer
		defer telemetry.Logs{Logger: slog.New(slog.NewTextHandler(&buf, nil))}.Attach(k)()
		fail(t, k, read)
		require.Contains(t, buf.String(), `level=INFO msg="holdfast: shadow breaker opened" breaker=db from=closed to=open reason=consecutive shadow=true`)
		time.Sleep(time.Second)
		require.Error(t, do(t.Context(), k, read, errDown))
		require.Contains(t, buf.String(), `level=INFO msg="holdfast: shadow probe failed"`)
		require.NotContains(t, buf.String(), "level=WARN")
	})
}
