package main

import (
	"fmt"
	"io"
	"os"
)

// progress returns what tells, on the screen, how far the runs are, and what
// clears it. With either end in a file or a pipe there is nobody who watches, and
// nothing is told.
func progress(stdout, stderr io.Writer) (told func(done, all int), clear func()) {
	if !isTerminal(stdout) || !isTerminal(stderr) {
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

// isTerminal reports whether w is a terminal, or at least a device that takes
// characters, and one that can move its cursor.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
