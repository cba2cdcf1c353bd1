package policyfile

import (
	"regexp"
	"slices"
	"strings"
)

// place is where something stands in a file: line and character, both from 1.
type place struct{ line, column int }

// node is one value of a file, whichever its syntax.
type node struct {
	place
	kind  kind
	text  string // as written, of a scalar; without quotes
	pairs []pair // of a mapping, in order
	fault string // if the value stands for something that is not read
}

type pair struct {
	key   *node
	value *node
}

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	sequence
	mapping
)

var kindNames = []string{"nothing", "a boolean", "a number", "a text", "a list", "a group of fields"}

func (k kind) String() string { return kindNames[k] }

// jsonNumber is what a number looks like in JSON. Of the other spellings of YAML,
// such as 010, 0x10 and 1_000, none is read: programs differ in what they mean.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// plain returns the kind of a scalar without quotes.
func plain(s string) kind {
	switch {
	case s == "" || s == "~" || s == "null" || s == "Null" || s == "NULL":
		return null
	case s == "true" || s == "false":
		return boolean
	case jsonNumber.MatchString(s):
		return number
	}
	return text
}

// nearest returns the name that was probably meant, "" if none is near.
func nearest(written string, names []string) string {
	plainly := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
	}
	best, least := "", 3
	for _, name := range names {
		if d := distance(plainly(written), plainly(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance is that of Levenshtein. Long texts are no names, and far from all.
func distance(a, b string) int {
	if len(a) > 50 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// listed returns names in order, as a text.
func listed(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}
