package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/policyfile"
)

// report prints the policies of a file as a table.
func report(w io.Writer, name string, f *policyfile.File, policies []holdfast.Explanation, short bool) {
	kit := cmp.Or(f.Name, "holdfast")
	fmt.Fprintf(w, "%s: policies of the kit %q for %s\n", cmp.Or(name, "its own sample"), kit, f.Wire)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range policies {
		attempts := "may be repeated"
		switch {
		case p.OneAttempt != "":
			attempts = "one attempt: " + p.OneAttempt
		case p.Safety == call.SafetyUnknown:
			attempts = "may be repeated if they are safe to repeat"
		}
		if short {
			fmt.Fprintf(table, "%s\t%s\n", method(p), attempts)
			continue
		}
		fmt.Fprintf(table, "\n%s\n", method(p))
		fmt.Fprintf(table, "  safety\t%s\t%s\n", safety(p), p.SafetyFrom)
		for _, l := range layers(p) {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", l.name, cmp.Or(l.set, "all defaults"), "from "+l.from)
		}
		fmt.Fprintf(table, "  attempts\t%s\n", attempts)
		for _, wait := range p.Waits {
			fmt.Fprintf(table, "  wait\t%s:\t%s\n", wait.What, wait.Bound)
		}
	}
	_ = table.Flush()
	if !short {
		fmt.Fprintln(w, "\nA field that is not shown has its default.")
	}
}

func method(p holdfast.Explanation) string {
	if p.Method == "" {
		return "every other method"
	}
	return p.Method
}

type layer struct{ name, set, from string }

// layers returns the layers of a policy, from the outermost to the innermost, in
// the words of a file.
func layers(p holdfast.Explanation) []layer {
	file := policyfile.File{Wire: p.Wire}
	file.Default = p.Policy
	text, err := file.JSON()
	if err != nil {
		panic(err) // it comes from a file
	}
	var read struct{ Default map[string]json.RawMessage }
	if err := json.Unmarshal(text, &read); err != nil {
		panic(err)
	}
	all := []layer{
		{"fallback", "", p.From.Fallback}, {"retry", "", p.From.Retry}, {"breaker", "", p.From.Breaker},
		{"timeout", "", p.From.Timeout}, {"bulkhead", "", p.From.Bulkhead},
	}
	for i := range all {
		var b bytes.Buffer
		if err := json.Compact(&b, read.Default[all[i].name]); err != nil {
			panic(err)
		}
		// No text in it has a quote, a comma or a colon of its own.
		plain := strings.NewReplacer(`"`, "", ",", ", ", ":", ": ").Replace(b.String())
		all[i].set = strings.TrimSuffix(strings.TrimPrefix(plain, "{"), "}")
	}
	return all
}

func safety(p holdfast.Explanation) string {
	if p.Safety == call.SafetyUnknown {
		return "each method's own"
	}
	return p.Safety.String()
}
