package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

func TestMain(m *testing.M) {
	tuneCollector()
	// The larger fleets take minutes under the race detector; figures_test.go and the
	// program itself play them.
	fleetSizes = fleetSizes[:2]
	os.Exit(m.Run())
}

// inside notices each figure.
func TestAFigureOutsideIsNoticed(t *testing.T) {
	results, err := runAll(t.Context(), articleRows()[1:2], 3, func(int, int) {})
	require.NoError(t, err)
	m := results[0].measured
	right := published{
		downstream: int(m.downstream.Max), bServed: int(m.bCount.Median), aOK: int(m.aOK.Max), aFailed: int(m.aFailed.Max),
		aFastFail: int(m.aFastFail.Max), aRejected: int(m.aRejected.Max),
		firstOpen: m.firstOpen.Max, lastClose: m.lastClose.Min, transitions: 11,
	}
	// Of three seeds the share of B is not within the range as a number of all.
	m.bServed = &span{0, 0.5, 1}
	require.True(t, m.inside(&right))
	for _, change := range []func(*published){
		func(p *published) { p.downstream++ },
		func(p *published) { p.bServed = 0 },
		func(p *published) { p.aOK++ },
		func(p *published) { p.aFailed++ },
		func(p *published) { p.aFastFail++ },
		func(p *published) { p.aRejected++ },
		func(p *published) { p.firstOpen += 0.02 },
		func(p *published) { p.lastClose -= 0.02 },
		func(p *published) { p.transitions++ },
		func(p *published) { p.transitions = 0 },
	} {
		wrong := right
		change(&wrong)
		require.False(t, m.inside(&wrong), "%+v", wrong)
	}
}

func output(t *testing.T, args ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, &out, io.Discard))
	return out.Bytes()
}

func TestTheSameSeedsGiveTheSameBytes(t *testing.T) {
	for _, args := range [][]string{{"-seeds=2"}, {"-seeds=2", "-json"}} {
		require.Equal(t, output(t, args...), output(t, args...))
	}
}

func TestTheJSON(t *testing.T) {
	var out struct {
		Seeds int
		Rows  []map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(output(t, "-seeds=2", "-json"), &out))
	require.Equal(t, 2, out.Seeds)
	require.GreaterOrEqual(t, len(out.Rows), 6)
	keys := []string{
		"name", "downstream", "b_served", "a_ok", "a_failed", "a_fast_fail", "a_rejected",
		"first_open_s", "last_close_s", "transitions",
	}
	for i, r := range out.Rows {
		for _, key := range keys {
			require.Contains(t, r, key)
		}
		if i < 6 {
			require.Contains(t, r, "article")
			require.Contains(t, r, "inside")
		}
	}
	require.JSONEq(t, `{"downstream":61,"b_served":0.9521,"a_ok":1239,"a_failed":0,"a_fast_fail":1759,"a_rejected":68,
		"first_open_s":12.28,"last_close_s":45.5,"transitions":11}`, string(out.Rows[4]["article"]))
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"-none"}, {"extra"}, {"-seeds=0"}} {
		require.Error(t, run(t.Context(), args, io.Discard, io.Discard))
	}
}

func TestTheKitsBreakerHoldsBackALateSuccess(t *testing.T) {
	kit, naive := kitsLateSuccess(), naiveLateSuccess()
	require.Equal(t, lateSuccess{opened: 10150 * time.Millisecond, probed: 15150 * time.Millisecond}, kit)
	require.Equal(t, lateSuccess{opened: 10150 * time.Millisecond, closed: 12 * time.Second}, naive)
	require.Equal(t, 1850*time.Millisecond, naive.closed-naive.opened)
}

// Five kits of three attempts multiply to 243, unless they know of each other. The
// kits are the real ones.
func TestNestedKitsMultiply(t *testing.T) {
	for _, tc := range []struct {
		even   bool
		budget retry.Budget
		want   int
	}{
		{true, retry.NoBudget(), 243},
		{false, retry.NoBudget(), 3},
		{false, retry.Budget{}, 3},
	} {
		sent := 0
		attempt := func(context.Context) (struct{}, error) {
			sent++
			return struct{}{}, errors.New("down")
		}
		for range nestedKits {
			kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
				Breaker: breaker.Off(),
				Retry:   &retry.Policy{MaxAttempts: 3, Backoff: retry.NoWait(), Budget: tc.budget, EvenNested: tc.even},
			}})
			require.NoError(t, err)
			inner := attempt
			attempt = func(ctx context.Context) (struct{}, error) {
				return holdfast.Do(ctx, kit, call.Info{Target: "t", Safety: call.ReadOnly}, inner)
			}
		}
		_, err := attempt(t.Context())
		require.Error(t, err)
		require.Equal(t, tc.want, sent)
	}
	// And in the simulation, for each A that has time enough.
	results, err := runAll(t.Context(), nestedRows(), 2, func(int, int) {})
	require.NoError(t, err)
	for i, want := range []float64{243, 0, 3, 3} {
		if want > 0 {
			require.InEpsilon(t, want, results[i].attempts.Median, 0.05, results[i].name)
		}
	}
	require.Less(t, results[1].attempts.Max, 60.0, "budgets alone")
}

// Callers who keep their breakers alone probe each by itself; those who share have one
// probe between them.
func TestAFleetThatSharesHasOneProbe(t *testing.T) {
	probes := map[string]float64{}
	for _, r := range fleetRows(fleetSizes) {
		results, err := runAll(t.Context(), []row{r}, 2, func(int, int) {})
		require.NoError(t, err)
		probes[r.name] = results[0].probes.Median
		after := 0.3 // three successes close
		if !r.sharing {
			after *= float64(r.setup.Callers)
		}
		require.InDelta(t, after, results[0].probesAfter.Median, 0.001, r.name)
		again, err := runAll(t.Context(), []row{r}, 2, func(int, int) {})
		require.NoError(t, err)
		require.Equal(t, results[0].measured, again[0].measured, r.name)
	}
	require.InEpsilon(t, 10, probes["10 alone"]/probes["1 alone"], 0.15)
	for _, name := range []string{"1 sharing", "10 sharing"} {
		require.Less(t, probes[name], 1.1, name)
		require.Greater(t, probes[name], 0.5, name)
	}
}
