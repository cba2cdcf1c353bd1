package main

import (
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

// progress returns what tells, on the screen, how far the runs are, and what
// clears it. With either end in a file or a pipe there is nobody who watches, and
// nothing is told.
func progress(stdout, stderr io.Writer) (told func(done, all int), clear func()) {
	if !program.IsTerminal(stdout) || !program.IsTerminal(stderr) {
		return func(int, int) {}, func() {}
	}
	last := -1
	told = func(done, all int) {
		if percent := 100 * done / all; percent != last {
			last = percent
			fmt.Fprintf(stderr, "\r%3d %% of %d runs", percent, all)
		}
	}
	return told, func() { fmt.Fprint(stderr, "\r\x1b[K") }
}
