package main

import (
	"fmt"
	"io"
	"strings"
)

// wrap writes a text as an item of a list, in lines of at most that width.
func wrap(w io.Writer, text string, width int) {
	lead, line := "- ", ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(lead)+len(line)+1+len(word) > width {
			fmt.Fprintln(w, lead+line)
			lead, line = "  ", word
			continue
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	fmt.Fprintln(w, lead+line)
}
