package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// figures is what was measured. Its JSON form is what -json prints.
type figures struct {
	Requests int            `json:"requests"`
	OK       int            `json:"ok"`
	P99      float64        `json:"ttft_p99_ms"` // of the requests while A was cut off
	Hits     map[string]int `json:"hits"`        // requests that reached each channel
	Mixed    int            `json:"mixed_streams"`

	refused int // requests that nobody served
	cutOff  int // requests made while A was cut off
	toA     int // that reached A then
	probes  int // of these, as A counted them
	longest time.Duration
}

// figures measures the run.
func (c *course) figures() figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := figures{Requests: len(c.completions), Hits: map[string]int{}}
	for _, p := range c.providers {
		f.Hits[p.name] = len(p.arrivals())
	}
	opened := c.opened("A")
	cutOff := func(at time.Time) bool { return !opened.IsZero() && at.After(opened) && at.Before(c.silentEnd) }
	var waits []time.Duration
	for _, done := range c.completions {
		if done.ok {
			f.OK++
		}
		if done.tokens == 0 {
			f.refused++
		}
		if len(done.from) > 1 {
			f.Mixed++
		}
		if cutOff(done.at) {
			f.cutOff++
			if done.tokens > 0 {
				waits = append(waits, done.first)
			}
		}
	}
	for _, hit := range c.providers[0].arrivals() {
		if cutOff(hit.at) {
			f.toA++
			if hit.probe {
				f.probes++
			}
		}
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		f.P99 = milliseconds(waits[(99*len(waits)+99)/100-1])
		f.longest = waits[len(waits)-1]
	}
	return f
}

// opened returns when a breaker opened first; c.mu is held.
func (c *course) opened(key string) time.Time {
	for _, t := range c.turnings {
		if t.Key == key && t.To == breaker.Open {
			return t.at
		}
	}
	return time.Time{}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (f figures) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(f) }

func (f figures) writeText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nrequests\t%d\n", f.Requests)
	fmt.Fprintf(table, "came to their end\t%d\n", f.OK)
	fmt.Fprintf(table, "broke off half way\t%d\n", f.Requests-f.OK-f.refused)
	fmt.Fprintf(table, "were refused, with all closed off\t%d\n", f.refused)
	fmt.Fprintf(table, "with tokens of more than one channel\t%d\n", f.Mixed)
	fmt.Fprintf(table, "reached A, B, C\t%d, %d, %d\n", f.Hits["A"], f.Hits["B"], f.Hits["C"])
	fmt.Fprintf(table, "while A was silent and cut off\t%d\n", f.cutOff)
	fmt.Fprintf(table, "  to the first token, p99\t%.0f ms\n", f.P99)
	fmt.Fprintf(table, "  to the first token, longest\t%.0f ms\n", milliseconds(f.longest))
	fmt.Fprintf(table, "  reached A\t%d, of which probes %d\n", f.toA, f.probes)
	return table.Flush()
}
