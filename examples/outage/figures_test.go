//go:build !race

// The tests of what 200 seeds give. The simulation is one goroutine a run, so that
// the race detector would find nothing and take minutes.

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var experiment200 = sync.OnceValues(func() (*outcome, error) {
	e := &outcome{seeds: fullSeeds}
	rows := articleRows()
	results, err := runAll(context.Background(), append(rows, kitRows()...), fullSeeds, func(int, int) {})
	e.article, e.kit = results[:len(rows):len(rows)], results[len(rows):]
	return e, err
})

func measured200(t *testing.T) *outcome {
	t.Helper()
	e, err := experiment200()
	require.NoError(t, err)
	return e
}

// The published experiment on this module's code: every figure of the article lies
// inside the range over 200 seeds, and what has one value there has it here.
func TestTheArticlesFiguresLieInsideTheRanges(t *testing.T) {
	results := measured200(t).article
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

// What the policy of policies.go is to reach, medians over 200 seeds; and the kit's
// rows as their names promise.
func TestThePolicyToCopyReachesItsGoals(t *testing.T) {
	e := measured200(t)
	best := e.named(bestRow)
	require.GreaterOrEqual(t, best.bServed.Median, 0.999)
	require.LessOrEqual(t, best.downstream.Median, 40.0)
	require.LessOrEqual(t, best.lastClose.Median, to.Seconds()+1)
	require.Less(t, best.threads.Max, float64(threads), "the threads are never all taken")

	// It does so in every run but for the moment of the closing, which is that of
	// the next probe.
	require.GreaterOrEqual(t, best.bServed.Min, 0.999)
	require.LessOrEqual(t, best.downstream.Max, 40.0)

	narrow := e.named("kit, 2 s, bulkhead of 10")
	require.Less(t, narrow.threads.Max, float64(threads))
	require.Equal(t, 1.0, narrow.bServed.Min)

	stall := e.named("kit, 2 s, stall rule")
	require.InDelta(t, 10.4, stall.firstOpen.Median, 0.1)
	require.GreaterOrEqual(t, stall.bServed.Median, 0.999)

	ramp, steep := e.named("kit, stall, 1 s, ramp 5 s"), e.named("kit, stall, cooldown 1 s")
	require.Less(t, ramp.aOK.Median, steep.aOK.Median, "a ramp lets in less at first")

	budget, none := e.named("3 attempts, budget 1/s"), e.named("3 attempts, no breaker")
	require.Greater(t, budget.bServed.Min, none.bServed.Max)
}

// The charts in docs/img are those that the program draws:
//
//	go run ./examples/outage -svg docs/img
func TestTheChartsAreTheProgramsOwn(t *testing.T) {
	drawings, err := measured200(t).drawings(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"outage-course.svg", "outage-bars.svg"} {
		var drawn bytes.Buffer
		require.NoError(t, drawings[name].Write(&drawn))
		kept, err := os.ReadFile(filepath.Join("..", "..", "docs", "img", name))
		require.NoError(t, err)
		require.Equal(t, string(kept), drawn.String(), name)
	}
}

// pageRow is a row of the table in docs/outage.md.
func pageRow(r *result) string {
	figure := func(s *span, since float64, places int, article func(*published) float64) string {
		if s == nil {
			return "-"
		}
		text := fmt.Sprintf("%.*f", places, s.Median-since)
		if p := r.article; p != nil {
			text += fmt.Sprintf(" (%.*f)", places, article(p)-since)
		}
		return text
	}
	name := r.name
	if name == bestRow {
		name = "**kit, the policy below**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", name,
		figure(r.downstream, 0, 0, func(p *published) float64 { return float64(p.downstream) }),
		figure(r.bServed, 0, 3, (*published).share),
		figure(r.firstOpen, from.Seconds(), 1, func(p *published) float64 { return p.firstOpen }),
		figure(r.lastClose, to.Seconds(), 1, func(p *published) float64 { return p.lastClose }))
}

// The table in docs/outage.md has the figures of the program, and its policy is that of
// policies.go.
func TestThePagesTableIsTheProgramsOwn(t *testing.T) {
	e := measured200(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "outage.md"))
	require.NoError(t, err)
	var table strings.Builder
	for _, r := range append(slices.Clone(e.article), e.kit[:len(e.kit)-byHand]...) {
		table.WriteString(pageRow(&r))
	}
	require.Contains(t, string(page), "| --- | --- | --- | --- | --- |\n"+table.String()+"\n", "it should be:\n%s", table.String())

	source, err := os.ReadFile("policies.go")
	require.NoError(t, err)
	_, policy, found := strings.Cut(string(source), "\nfunc Policy()")
	require.True(t, found)
	require.Contains(t, string(page), "```go\nfunc Policy()"+policy+"```\n")
}

// And what it says of the policy in a silence is what the program says.
func TestThePagesFindingsAreTheProgramsOwn(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "outage.md"))
	require.NoError(t, err)
	_, said, found := strings.Cut(string(output(t, "-scenario", "scenarios/silent.yaml")), "\n\n- ")
	require.True(t, found)
	require.Contains(t, string(page), "```\n- "+said+"```\n")
}

// A hundred callers who share have one probe as well, and those alone a hundred.
func TestAHundredCallers(t *testing.T) {
	for _, r := range fleetRows([]fleetSize{{100, 1}}) {
		results, err := runAll(t.Context(), []row{r}, 1, func(int, int) {})
		require.NoError(t, err)
		want, after := 85.0, 30.0
		if r.sharing {
			want, after = 0.9, 0.3
		}
		require.InEpsilon(t, want, results[0].probes.Median, 0.15, r.name)
		require.InDelta(t, after, results[0].probesAfter.Median, 0.001, r.name)
	}
}
