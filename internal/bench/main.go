// Bench measures holdfast beside its peers, all on the same work in the same
// run, and holds it against the goals for its speed and size.
//
//	go run .                    # a table, under five minutes
//	go run . -quick             # the same with short passes, for a first look
//	go run . -run 'grpc|http'   # some rows
//	go run . -json              # medians, ratios to the best peer and to bare, goals
//
// It is a module of its own, so that nobody who uses holdfast has to know the
// peers. What each library does when things go wrong is told by the program in
// the folder behaviour.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"
)

func main() {
	if asChild() {
		return
	}
	var (
		asJSON = flag.Bool("json", false, "print JSON instead of a table")
		only   = flag.String("run", "", "run only the rows that match this regular expression")
		passes = flag.Int("passes", 6, "passes of each contender; network rows make 16 for each 6")
		each   = flag.Duration("pass", 25*time.Millisecond, "length of a pass")
		quick  = flag.Bool("quick", false, "3 passes of 5 ms")
		list   = flag.Bool("list", false, "print the rows' names and measure nothing")
	)
	flag.Parse()
	if *quick {
		*passes, *each = 3, 5*time.Millisecond
	}
	if err := report(*only, plan{*passes, *each}, *asJSON, *list); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func report(only string, p plan, asJSON, list bool) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if p.passes < 1 || p.each <= 0 {
		return fmt.Errorf("-passes %d of %v: must be at least one, and take time", p.passes, p.each)
	}
	var outcomes []*outcome
	for _, r := range rows() {
		switch {
		case !pattern.MatchString(r.name):
			continue
		case list:
			fmt.Println(r.name)
			continue
		}
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", r.name)
		o, err := run(&r, p)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, o)
	}
	switch {
	case list:
		return nil
	case len(outcomes) == 0:
		return fmt.Errorf("no row matches -run %q", only)
	}
	fmt.Fprint(os.Stderr, "\r\x1b[K")
	if asJSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(outcomes)
	}
	printTable(os.Stdout, outcomes)
	return nil
}
