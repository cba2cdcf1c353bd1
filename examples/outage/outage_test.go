package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// The published experiment on this module's code: every figure of the article lies
// inside the range over 200 seeds, and what has one value there has it here.
func TestTheArticlesFiguresLieInsideTheRanges(t *testing.T) {
	results, err := runAll(t.Context(), articleRows(), fullSeeds, func(int, int) {})
	require.NoError(t, err)
	require.Len(t, results, 6)
	exactly := func(n float64) *span { return &span{n, n, n} }
	for _, r := range results {
		require.NotNil(t, r.article, r.name)
		require.True(t, r.inside(r.article), "%s: %+v", r.name, r.measured)
		require.Equal(t, exactly(float64(r.article.transitions)), r.transitions, r.name)
	}
	byName := map[string]result{}
	for _, r := range results {
		byName[r.name] = r
	}
	for name, want := range map[string]struct{ downstream, transitions float64 }{
		"breaker, timeout 30 s":  {40, 3},
		"3 attempts, no breaker": {600, 0},
		"Retry(CB), 3 attempts":  {61, 11},
	} {
		require.Equal(t, exactly(want.downstream), byName[name].downstream, name)
		require.Equal(t, exactly(want.transitions), byName[name].transitions, name)
	}
	require.Equal(t, exactly(11), byName["breaker"].transitions)
	require.Equal(t, exactly(7), byName["CB(Retry), 3 attempts"].transitions)
	require.Equal(t, 600.0, byName["no breaker"].downstream.Median)
	require.Equal(t, 600.0, byName["no breaker"].downstream.Max)
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
	for _, args := range [][]string{{"-short"}, {"-short", "-json"}} {
		require.Equal(t, output(t, args...), output(t, args...))
	}
}

func TestTheJSON(t *testing.T) {
	var out struct {
		Seeds int
		Rows  []map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(output(t, "-short", "-json"), &out))
	require.Equal(t, shortSeeds, out.Seeds)
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
	for _, args := range [][]string{{"-none"}, {"extra"}} {
		require.Error(t, run(t.Context(), args, io.Discard, io.Discard))
	}
}
