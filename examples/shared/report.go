package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// figures are what -json prints. The probes are those that reached the
// dependency while it was down; the spreads are those of the shared run, from
// the first worker to the last.
type figures struct {
	Store               string  `json:"store"`
	Workers             int     `json:"workers"`
	ProbesShared        int     `json:"probes_shared"`
	ProbesAlone         int     `json:"probes_alone"`
	MaxConcurrentProbes int     `json:"max_concurrent_probes"`
	OpenSpread          float64 `json:"open_spread_ms"`
	CloseSpread         float64 `json:"close_spread_ms"`
}

func figuresOf(p plan, store string, alone, shared result) figures {
	return figures{
		Store: store, Workers: p.workers, ProbesShared: shared.probes, ProbesAlone: alone.probes,
		MaxConcurrentProbes: shared.mostProbes, OpenSpread: ms(shared.opened.took()), CloseSpread: ms(shared.closed.took()),
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// report prints what reached the dependency in the outage.
func report(w io.Writer, p plan, alone, shared result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what string, of func(result) string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t\n", what, of(alone), of(shared))
	}
	rate := func(n int, d time.Duration) string { return fmt.Sprintf("%.1f", float64(n)/d.Seconds()) }
	between := func(s spread) string { return fmt.Sprintf("%.1f ms (%d of %d)", ms(s.took()), s.workers, p.workers) }
	fmt.Fprintln(t)
	fmt.Fprintln(t, "in the outage\teach by itself\tshared\t")
	row("requests before all had opened", func(r result) string { return fmt.Sprint(r.requests - r.tail) })
	row("requests a second from then on", func(r result) string { return rate(r.tail, r.settled) })
	row("probes", func(r result) string { return fmt.Sprint(r.probes) })
	row("probes a second", func(r result) string { return rate(r.probes, p.outage) })
	row("probes at once, at most", func(r result) string { return fmt.Sprint(r.mostProbes) })
	row("from the first worker to open to the last", func(r result) string { return between(r.opened) })
	row("from the first worker to close to the last", func(r result) string { return between(r.closed) })
	t.Flush()
}
