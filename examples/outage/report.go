package main

import (
	"fmt"
	"io"
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

const nameWidth = 27

// table writes rows, each with its ranges and, if it has one, the article's figures.
func table(w io.Writer, results []result) {
	fmt.Fprintf(w, "%-*s%-7s", nameWidth, "", "")
	for _, c := range columns {
		fmt.Fprintf(w, "%11s", c.title)
	}
	fmt.Fprintln(w)
	for i := range results {
		r := &results[i]
		name := r.name
		line := func(what string, value func(column) (float64, bool)) {
			fmt.Fprintf(w, "%-*s%-7s", nameWidth, name, what)
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

// writeText prints it all for people.
func (e *outcome) writeText(out io.Writer) error {
	w := &keeper{Writer: out}
	fmt.Fprintf(w, `A caller with %d threads gets %d requests A and %d requests B a second. A calls a dependency that
answers in %v, and from %v to %v answers nothing; the caller gives up after %v. B calls
nothing and takes %v. A request that finds no thread is rejected. The figures are of %d seeds.

The article's configurations

`, threads, rate, rate, latency, from, to, patient, bTakes, e.seeds)
	table(w, e.article)
	outside := 0
	for i := range e.article {
		if r := &e.article[i]; !r.inside(r.article) {
			outside++
		}
	}
	if outside == 0 {
		fmt.Fprint(w, "\nEvery figure of the article's lies inside its range.\n")
	} else {
		fmt.Fprintf(w, "\nIn %d rows not every figure of the article's lies inside its range: so few seeds do not show it whole.\n", outside)
	}
	fmt.Fprint(w, legend)

	fmt.Fprint(w, "\nThe kit in the same silence\n\n")
	table(w, e.kit)
	e.writeGain(w)

	fmt.Fprintf(w, "\nRetries inside retries: %d kits of 3 attempts each, in one process; %d A a second, answered with an error\n\n", nestedKits, nestedA)
	fmt.Fprintf(w, "%-*s%12s%18s\n", nameWidth, "", "downstream", "attempts for an A")
	for _, r := range e.nested {
		fmt.Fprintf(w, "%-*s%12.0f%18.1f\n", nameWidth, r.name, r.downstream.Median, r.attempts.Median)
	}

	fmt.Fprint(w, "\nA late success: three slow calls are in flight when the breaker opens, and are answered well 1.85 s later\n\n")
	fmt.Fprintf(w, "%-*s%s\n", nameWidth, "kit", e.late)
	fmt.Fprintf(w, "%-*s%s\n", nameWidth, "naive rule", e.naive)

	fmt.Fprintf(w, "\nA fleet, each caller with the policy of policies.go and %d A a second: probes a second that reach the dependency\n\n", fleetA)
	fmt.Fprintf(w, "%-*s%14s%16s%8s\n", nameWidth, "callers", "in the outage", "10 s after it", "seeds")
	for _, r := range e.fleet {
		fmt.Fprintf(w, "%-*s%14.1f%16.1f%8d\n", nameWidth, r.name, r.probes.Median, r.probesAfter.Median, r.seeds)
	}
	return w.err
}

// writeGain sets the best row beside the article's.
func (e *outcome) writeGain(w io.Writer) {
	best, breaker := e.named(bestRow), e.named("breaker")
	fmt.Fprintf(w, `
With the policy of policies.go, against the article's breaker, medians: B served %.3f instead of %.3f, %.0f
calls to the silent dependency instead of %.0f, closed again %.2f s after the recovery instead of %.2f s.
`, best.bServed.Median, breaker.bServed.Median, best.downstream.Median, breaker.downstream.Median,
		best.lastClose.Median-to.Seconds(), breaker.lastClose.Median-to.Seconds())
}

// String says what became of the breaker.
func (l lateSuccess) String() string {
	after := func(at float64) float64 { return at - l.opened.Seconds() }
	if l.closed > 0 {
		return fmt.Sprintf("opens at %.2f s, closes %.2f s later: at calls that began before it opened", l.opened.Seconds(), after(l.closed.Seconds()))
	}
	return fmt.Sprintf("opens at %.2f s, stays open, lets a probe in %.2f s later", l.opened.Seconds(), after(l.probed.Seconds()))
}

// keeper keeps the first error of a writer.
type keeper struct {
	io.Writer
	err error
}

func (k *keeper) Write(p []byte) (int, error) {
	if k.err != nil {
		return 0, k.err
	}
	n, err := k.Writer.Write(p)
	k.err = err
	return n, err
}

var legend = fmt.Sprintf(`
downstream   attempts sent to the dependency from %[1]v to %[2]v
B served     the share of the B that arrived in that time
A            all %[3]v of them
fast-fail    an A that the client ended by itself: a breaker or a bulkhead refused its first attempt or the next
rejected     an A that found no thread
opens        the first time the breaker opens
closed       the last time it closes
changes      of the breaker's state
`, from, to, lasts)
