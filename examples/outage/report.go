package main

import (
	"fmt"
	"io"
	"strings"
)

// column is a figure of the table.
type column struct {
	title   string
	places  int
	span    func(*result) *span
	article func(*published) float64
}

var columns = []column{
	{"downstream", 0, func(r *result) *span { return r.downstream }, func(p *published) float64 { return float64(p.downstream) }},
	{"B served", 3, func(r *result) *span { return r.bServed }, (*published).share},
	{"A ok", 0, func(r *result) *span { return r.aOK }, func(p *published) float64 { return float64(p.aOK) }},
	{"failed", 0, func(r *result) *span { return r.aFailed }, func(p *published) float64 { return float64(p.aFailed) }},
	{"fast-fail", 0, func(r *result) *span { return r.aFastFail }, func(p *published) float64 { return float64(p.aFastFail) }},
	{"rejected", 0, func(r *result) *span { return r.aRejected }, func(p *published) float64 { return float64(p.aRejected) }},
	{"opens, s", 2, func(r *result) *span { return r.firstOpen }, func(p *published) float64 { return p.firstOpen }},
	{"closed, s", 2, func(r *result) *span { return r.lastClose }, func(p *published) float64 { return p.lastClose }},
	{"changes", 0, func(r *result) *span { return r.transitions }, func(p *published) float64 { return float64(p.transitions) }},
}

const nameWidth = 24

// table writes rows, each with its ranges and, if it has one, the article's figures.
func table(w io.Writer, results []result) {
	fmt.Fprintf(w, "%-*s%-9s", nameWidth, "", "")
	for _, c := range columns {
		fmt.Fprintf(w, "%11s", c.title)
	}
	fmt.Fprintln(w)
	for i := range results {
		r := &results[i]
		name := r.name
		line := func(what string, value func(column) (float64, bool)) {
			fmt.Fprintf(w, "%-*s%-9s", nameWidth, name, what)
			name = ""
			for _, c := range columns {
				text := "-"
				if v, ok := value(c); ok {
					text = fmt.Sprintf("%.*f", c.places, v)
				}
				fmt.Fprintf(w, "%11s", text)
			}
			fmt.Fprintln(w)
		}
		if p := r.article; p != nil {
			line("article", func(c column) (float64, bool) {
				v := c.article(p)
				return v, v != 0 || c.places != 2
			})
		}
		of := func(bound func(*span) float64) func(column) (float64, bool) {
			return func(c column) (float64, bool) {
				if s := c.span(r); s != nil {
					return bound(s), true
				}
				return 0, false
			}
		}
		line("least", of(func(s *span) float64 { return s.Min }))
		line("median", of(func(s *span) float64 { return s.Median }))
		line("most", of(func(s *span) float64 { return s.Max }))
	}
}

func writeText(w io.Writer, seeds int, results []result) error {
	fmt.Fprintf(w, `A caller with %d threads gets %d requests A and %d requests B a second. A calls a dependency that
answers in %v, and from %v to %v answers nothing; the caller gives up after %v. B calls
nothing and takes %v. A request that finds no thread is rejected. The figures are of %d seeds.

`, threads, rate, rate, latency, from, to, patient, bTakes, seeds)
	table(w, results)
	outside := 0
	for _, r := range results {
		if r.article != nil && !r.inside(r.article) {
			outside++
		}
	}
	verdict := "\nEvery figure of the article's lies inside the range.\n"
	if outside > 0 {
		verdict = fmt.Sprintf("\nIn %d rows the article's figures do not all lie inside the range: it takes %d seeds to see them all.\n", outside, fullSeeds)
	}
	_, err := io.WriteString(w, verdict+legend)
	return err
}

var legend = strings.TrimLeft(`
downstream   attempts sent to the dependency from 10 s to 40 s
B served     the share of the B that arrived in that time
fast-fail    an A that the client ended by itself: a breaker or a bulkhead refused its first attempt or
             the next one
rejected     an A that found no thread
opens        the first time the breaker opens
closed       the last time it closes
changes      of the breaker's state
`, "")
