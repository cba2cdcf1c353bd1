// Behaviour tells what libraries do when things go wrong. Each row is a small
// program run on every library that can do it, and each cell says what was seen:
// states, counts, times. No verdict is passed here.
//
//	go run ./behaviour                    # a table, in about half a minute
//	go run ./behaviour -run 'late|probe'  # some rows
//	go run ./behaviour -json
//
// Every cell runs in a process of its own with a limit of its own, so that one
// that deadlocks, crashes or leaves goroutines behind is contained. Each library
// is set up as its own documentation tells, with the settings that serve it best
// in the case.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"text/tabwriter"
)

func main() {
	if asCell() {
		return
	}
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	only := flag.String("run", "", "run only the rows that match this regular expression")
	flag.Parse()
	if err := report(os.Stdout, *only, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "behaviour:", err)
		os.Exit(1)
	}
}

func report(out io.Writer, only string, asJSON bool) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	seen := runAll(pattern.MatchString)
	if len(seen) == 0 {
		return fmt.Errorf("no row matches -run %q", only)
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(seen)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, s := range seen {
		if i == 0 || s.Row != seen[i-1].Row {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s\n", s.Row)
			fmt.Fprintf(w, "  %s\n", s.Asks)
		}
		fmt.Fprintf(w, "    %s\t%s\n", s.Library, s.Did)
	}
	return w.Flush()
}
