package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A row asks one thing of several libraries.
type row struct {
	name  string
	asks  string // what is done, and what is looked at
	cells []cell
}

// A cell is the row's program on one library. It returns what was seen; an error
// says that the program itself failed.
type cell struct {
	library string
	run     func() (string, error)
}

// sight is what one cell has shown.
type sight struct {
	Row     string `json:"row"`
	Asks    string `json:"asks"`
	Library string `json:"library"`
	Did     string `json:"did"`
	Broke   bool   `json:"broke,omitempty"` // the program failed, and shows nothing
}

const (
	cellEnv = "HOLDFAST_BEHAVIOUR_CELL"

	// cellLimit is how long a cell's program may take; after that nothing more
	// is expected of it.
	cellLimit = 4 * time.Second

	// processLimit is for one whose process does not even notice that.
	processLimit = 3 * cellLimit

	// side by side: cells mostly wait.
	atOnce = 4
)

// asCell runs one cell if this process was started for it, and does not return
// then.
func asCell() bool {
	name := os.Getenv(cellEnv)
	if name == "" {
		return false
	}
	rowName, library, _ := strings.Cut(name, "|")
	for _, r := range rows() {
		for _, c := range r.cells {
			if r.name == rowName && c.library == library {
				did, err := within(c.run, cellLimit)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Print(did)
				os.Exit(0) // whatever the library left behind
			}
		}
	}
	fmt.Fprintf(os.Stderr, "there is no cell %q\n", name)
	os.Exit(1)
	return true
}

// within runs a program for as long as the limit. What it does not come back from
// is a finding as well.
func within(program func() (string, error), limit time.Duration) (string, error) {
	type end struct {
		did string
		err error
	}
	ended := make(chan end, 1)
	go func() {
		did, err := program()
		ended <- end{did, err}
	}()
	select {
	case e := <-ended:
		return e.did, e.err
	case <-time.After(limit):
		return fmt.Sprintf("no end within %v: deadlock", limit), nil
	}
}

// runAll runs the cells of the rows that are wanted, in the order of the table.
func runAll(wanted func(row string) bool) []sight {
	var seen []sight
	for _, r := range rows() {
		if !wanted(r.name) {
			continue
		}
		for _, c := range r.cells {
			seen = append(seen, sight{Row: r.name, Asks: r.asks, Library: c.library})
		}
	}
	var all sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for i := range seen {
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			seen[i].look()
		})
	}
	all.Wait()
	return seen
}

// look runs the cell in a process of its own.
func (s *sight) look() {
	ctx, cancel := context.WithTimeout(context.Background(), processLimit)
	defer cancel()
	exe, err := os.Executable()
	if err != nil {
		s.Did, s.Broke = err.Error(), true
		return
	}
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), cellEnv+"="+s.Row+"|"+s.Library)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err = cmd.Run()
	switch first, _, _ := strings.Cut(complaints.String(), "\n"); {
	case ctx.Err() != nil:
		s.Did = fmt.Sprintf("its process did not end within %v", processLimit)
	case err != nil && strings.HasPrefix(first, "panic: ") || strings.HasPrefix(first, "fatal error: "):
		s.Did = "the process died: " + first
	case err != nil:
		s.Did, s.Broke = first, true
	default:
		s.Did = out.String()
	}
}
