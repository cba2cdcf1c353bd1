package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/examples/outage/chart"
	"github.com/holdfast-go/holdfast/examples/outage/sim"
)

// drawing is anything that chart draws.
type drawing interface{ Write(io.Writer) error }

// writeDrawings writes the drawings into a folder, which is made if need be, by the
// names of the files.
func writeDrawings(dir string, drawings map[string]drawing) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(drawings)) {
		var b bytes.Buffer
		if err := drawings[name].Write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}

const (
	courseStep  = 500 * time.Millisecond
	courseSeeds = 20 // whose mean a course is
)

// courseOf draws the courses of rows, which have one setup.
func courseOf(ctx context.Context, head chart.Head, rows []row, seeds int) (chart.Course, error) {
	s := rows[0].setup
	steps := int(s.Lasts / courseStep)
	c := chart.Course{
		Head: head, Step: courseStep,
		Band: chart.Band{From: s.From, To: s.To, Name: "the outage"},
		Panels: []chart.Panel{
			{Title: fmt.Sprintf("Threads in use, of %d", s.Threads), Most: float64(s.Threads)},
			{Title: "Share of B served", Most: 1},
			{Title: "Calls to the dependency, a second"},
		},
	}
	for i, r := range rows {
		c.Series = append(c.Series, chart.Series{Name: r.name, Colour: i})
		sum := make([]sim.Step, steps)
		for seed := range seeds {
			if ctx.Err() != nil {
				return c, context.Cause(ctx)
			}
			trace := &sim.Trace{Every: courseStep}
			if _, err := sim.Run(uint64(seed+1), r.setup, r.client, trace); err != nil {
				return c, err
			}
			for j, step := range trace.Steps[:min(steps, len(trace.Steps))] {
				sum[j].Threads += step.Threads
				sum[j].Sent += step.Sent
				sum[j].BArrived += step.BArrived
				sum[j].BServed += step.BServed
			}
		}
		threads, served, sent := make([]float64, steps), make([]float64, steps), make([]float64, steps)
		for j, step := range sum {
			threads[j] = step.Threads / float64(seeds)
			served[j] = math.NaN()
			if step.BArrived > 0 {
				served[j] = float64(step.BServed) / float64(step.BArrived)
			}
			sent[j] = float64(step.Sent) / float64(seeds) / courseStep.Seconds()
		}
		for k, values := range [][]float64{threads, served, sent} {
			c.Panels[k].Values = append(c.Panels[k].Values, values)
		}
	}
	return c, nil
}

// barsOf draws rows beside each other.
func barsOf(head chart.Head, results []result, strong string, apart ...int) chart.Bars {
	b := chart.Bars{
		Head:  head,
		Range: "least to most of all seeds",
		Columns: []chart.BarColumn{
			{Title: "Share of B served in the outage", Most: 1, Text: func(v float64) string { return fmt.Sprintf("%.3f", v) }},
			{Title: "Calls to the dependency in the outage", Text: func(v float64) string { return fmt.Sprintf("%.0f", v) }},
		},
	}
	for i, r := range results {
		row := chart.BarRow{Name: r.name, Strong: r.name == strong, Apart: slices.Contains(apart, i), Colour: 2}
		if r.article != nil {
			row.Colour = 0
			b.Mark = "the article's figure"
		}
		b.Rows = append(b.Rows, row)
		for k, s := range []*span{r.bServed, r.downstream} {
			bar := chart.Bar{Value: s.Median, Low: s.Min, High: s.Max}
			if p := r.article; p != nil {
				mark := []float64{p.share(), float64(p.downstream)}[k]
				bar.Mark = &mark
			}
			b.Columns[k].Bars = append(b.Columns[k].Bars, bar)
		}
	}
	return b
}

// drawings are those of the experiment.
func (e *outcome) drawings(ctx context.Context) (map[string]drawing, error) {
	var rows []row
	for _, name := range []string{"no breaker", "breaker", bestRow} {
		rows = append(rows, e.named(name).row)
	}
	rows[1].name, rows[2].name = "the article's breaker", "holdfast, with the policy of policies.go"
	seeds := min(e.seeds, courseSeeds)
	course, err := courseOf(ctx, chart.Head{
		Title: "A caller whose dependency goes silent for 30 s",
		Note:  fmt.Sprintf("40 threads; 50 A a second, which call the dependency, and 50 B, which do not; mean of %d runs in steps of 0.5 s", seeds),
	}, rows, seeds)
	if err != nil {
		return nil, err
	}
	course.Band.Name = "the dependency answers nothing"
	all := append(slices.Clone(e.article), e.kit...)
	return map[string]drawing{
		"outage-course.svg": course,
		"outage-bars.svg": barsOf(chart.Head{
			Title: "What each configuration makes of the same silence",
			Note:  fmt.Sprintf("median of %d runs; grey: the article's configurations, blue: the kit", e.seeds),
		}, all, bestRow, len(e.article), len(all)-byHand),
		"outage-fleet.svg": e.fleetDrawing(),
	}, nil
}

// fleetDrawing shows how the probes grow with the fleet.
func (e *outcome) fleetDrawing() chart.Scaling {
	s := chart.Scaling{
		Head: chart.Head{
			Title: "Probes of a fleet that reach the dependency",
			Note:  fmt.Sprintf("every caller with the policy of policies.go and %d A a second; medians", fleetA),
		},
		XName: "callers", YName: "Probes a second",
		Text: func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") },
	}
	for i, way := range fleetWays {
		during, after := chart.Series{Name: way + ", in the outage", Colour: 1 + i}, chart.Series{Name: way + ", in the 10 s after it", Colour: 1 + i, Dashed: true}
		var probes, probesAfter []float64
		for _, r := range e.fleet {
			if !strings.HasSuffix(r.name, " "+way) {
				continue
			}
			if i == 0 {
				s.Sizes = append(s.Sizes, float64(r.setup.Callers))
			}
			probes, probesAfter = append(probes, r.probes.Median), append(probesAfter, r.probesAfter.Median)
		}
		s.Series = append(s.Series, during, after)
		s.Values = append(s.Values, probes, probesAfter)
		s.LabelsBelow = append(s.LabelsBelow, false, way == "sharing")
	}
	return s
}
