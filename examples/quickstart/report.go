package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// report is what the program prints at its end.
type report struct {
	plan       plan
	http, grpc pair
}

// pair is the two runs on one wire.
type pair struct{ bare, kit *course }

// writeJSON prints one object.
func (r report) writeJSON(w io.Writer) error {
	type pairOf struct {
		Bare figures `json:"bare"`
		Kit  figures `json:"kit"`
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		HTTP pairOf `json:"http"`
		GRPC pairOf `json:"grpc"`
	}{
		pairOf{r.http.bare.figures(), r.http.kit.figures()},
		pairOf{r.grpc.bare.figures(), r.grpc.kit.figures()},
	})
}

// writeText prints the table for people.
func (r report) writeText(w io.Writer) error {
	p := r.plan
	fmt.Fprintf(w, "%d workers, %v between two calls, %v for a call.\n", p.workers, p.think, callTimeout)
	fmt.Fprintf(w, "The servers answer for %v, take requests and answer nothing for %v, and answer again for %v.\n\n",
		p.healthy, p.silent, p.healed)

	columns := []figures{r.http.bare.figures(), r.http.kit.figures(), r.grpc.bare.figures(), r.grpc.kit.figures()}
	row := func(name string, value func(figures) string) {
		fmt.Fprintf(w, "%-48s", name)
		for _, f := range columns {
			fmt.Fprintf(w, "%11s", value(f))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%-48s%11s%11s%11s%11s\n", "", "http bare", "http kit", "grpc bare", "grpc kit")
	row("calls", func(f figures) string { return fmt.Sprint(f.Calls) })
	row("ok", func(f figures) string { return fmt.Sprint(f.OK) })
	row("failed", func(f figures) string { return fmt.Sprint(f.Failed) })
	row("refused", func(f figures) string { return fmt.Sprint(f.Refused) })
	row("requests that reached the server in the silence", func(f figures) string { return fmt.Sprint(f.OutageHits) })
	row("p50 of a call in the silence", func(f figures) string { return millis(f.OutageP50) })
	row("p99 of a call in the silence", func(f figures) string { return millis(f.OutageP99) })
	row("the longest", func(f figures) string { return millis(f.outageMax) })
	row("from the recovery to the first success", func(f figures) string { return seconds(f.FirstOK) })
	row("from the recovery to 99 % success", func(f figures) string { return seconds(f.Recovered) })

	fmt.Fprintf(w, "\n%-10s %s\n", "", ruler(p))
	for _, run := range []struct {
		name string
		c    *course
	}{{"http bare", r.http.bare}, {"http kit", r.http.kit}, {"grpc bare", r.grpc.bare}, {"grpc kit", r.grpc.kit}} {
		fmt.Fprintf(w, "%-10s %s\n", run.name, run.c.strip)
	}
	_, err := fmt.Fprintf(w, "%s\n%s", legend, notes)
	return err
}

const notes = `
refused          by the kit, without touching the server: circuit open, or too many in flight
in the silence   of every call that began in it, however it ended: the first ones, which ran into it
                 before the breaker knew, and the probes count too. A caller who is refused is
                 soon back to ask again, so that the kit's callers make more calls
99 % success     from this success on, 99 % of the calls that end in any half second succeed

The bare client is back at once, for it never stopped calling. The kit is back with its next probe.
`

func millis(v float64) string { return fmt.Sprintf("%.3f ms", v) }

func seconds(ms *float64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("%.3f s", *ms/1000)
}
