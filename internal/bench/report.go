package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printTable writes the outcomes as a table, one line each.
func printTable(out io.Writer, outcomes []*outcome) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "row\tkit\tallocs\tbare\tbest peer\tkit/peer\tother peers\tgoal\there\tverdict")
	for _, o := range outcomes {
		best, toBest, others := "-", "-", []string{}
		for _, p := range o.Peers {
			if p.Name == o.BestPeer {
				best, toBest = p.text(o.Unit, o.Bare.allocs()), fmt.Sprintf("%.2f", o.ToBestPeer)
			} else {
				others = append(others, p.text(o.Unit, o.Bare.allocs()))
			}
		}
		bare := "-"
		if o.Bare != nil {
			bare = number(o.Bare.Median)
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", o.Row, number(o.Kit.Median), o.Kit.Allocs-o.Bare.allocs(), bare,
			best, toBest, strings.Join(others, ", "), o.Goal, o.allowed(), o.verdict())
	}
	w.Flush()
	printLines(out, "\nWhat does not compare:", outcomes, func(o *outcome) string { return o.Note })
	printLines(out, "\nWhy a goal is missed:", outcomes, func(o *outcome) string {
		if len(o.Faults) > 0 && o.Why == "" {
			return "no reason is known: it may be noise, so run it again on a quiet machine"
		}
		return o.Why
	})
	fmt.Fprintln(out, "\nMedians, in ns per operation or B per object; allocations, the peers' in brackets, are those over bare. The goal's nanoseconds\n"+
		"are those of the machine it was written on; the column here has what they come to on this one, by primitives measured in the same passes.")
}

// printLines writes what there is to say of the outcomes, if there is anything: each
// text once, with the rows it is of.
func printLines(out io.Writer, heading string, outcomes []*outcome, of func(*outcome) string) {
	var texts []string
	rows := map[string][]string{}
	for _, o := range outcomes {
		text := of(o)
		if text == "" {
			continue
		}
		if rows[text] == nil {
			texts = append(texts, text)
		}
		rows[text] = append(rows[text], o.Row)
	}
	if len(texts) > 0 {
		fmt.Fprintln(out, heading)
	}
	for _, text := range texts {
		fmt.Fprintf(out, "- %s:\n  %s.\n", strings.Join(rows[text], "; "), text)
	}
}

// text is the figure of a peer, with its allocations over those of the bare call.
func (f figure) text(unit string, bare float64) string {
	if unit == "B" {
		return f.Name + " " + number(f.Median)
	}
	return fmt.Sprintf("%s %s (%.0f)", f.Name, number(f.Median), f.Allocs-bare)
}

func (o *outcome) allowed() string {
	if o.Allowed == 0 {
		return "-"
	}
	return "<= " + number(o.Allowed)
}

func (o *outcome) verdict() string {
	switch {
	case o.Goal == "":
		return "-"
	case len(o.Faults) == 0:
		return "met"
	}
	return "missed: " + strings.Join(o.Faults, "; ")
}

func number(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
