package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Fault is one thing that is wrong in a file.
type Fault struct {
	Line, Column int    // from 1; a column is a character
	Path         string // of the field, as in default.retry.max_attempts; "" for the file
	Text         string // what is wrong, with the value

	form bool // of the file's form, rather than of what the policies say
	near bool // the field itself is not in the file
}

// Error returns "line:column: path = value: what is wrong", or as much of it as
// there is.
func (f *Fault) Error() string {
	path := f.Path
	switch {
	case path == "":
	case strings.HasPrefix(f.Text, "= "):
		path += " "
	default:
		path += ": "
	}
	return fmt.Sprintf("%d:%d: %s%s", f.Line, f.Column, path, f.Text)
}

func faultAt(at place, format string, args ...any) *Fault {
	return &Fault{Line: at.line, Column: at.column, Text: fmt.Sprintf(format, args...), form: true}
}

// Error is all that is wrong in a file, in the order of its lines.
type Error struct {
	Name   string // of the file; "" if it was not read by name
	Faults []*Fault
}

// Error has a line for each fault: "name:line:column: path text".
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Error()
		if e.Name != "" {
			lines[i] = e.Name + ":" + lines[i]
		}
	}
	if len(lines) == 1 {
		return "policyfile: " + lines[0]
	}
	return "policyfile: bad policies\n\t" + strings.Join(lines, "\n\t")
}

// Unwrap returns the faults.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Faults))
	for i, f := range e.Faults {
		errs[i] = f
	}
	return errs
}

func failure(faults []*Fault) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b *Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Faults: faults}
}

// inFileWords says in the words of a file what the checks say in those of code.
var inFileWords = strings.NewReplacer(
	"bulkhead.Off() limits nothing", "bulkhead: off limits nothing",
	"retry.NoWait() repeats at once", "backoff: none repeats at once",
	"retry.Unlimited", "unlimited",
	"or NoJitter", "or none",
	"PerTarget, PerMethod or TwoLevel", "per_target, per_method or two_level",
)

// place finds where in the file a fault of the configuration stands: at its field,
// or else at the nearest group around it.
func (d *decoder) place(f *check.Fault) *Fault {
	path := f.Field
	if !strings.HasPrefix(path, "Methods[") && path != "Methods" && path != "Name" && !strings.HasPrefix(path, "Default.") {
		path = "Default." + path // it is what methods without an entry have
	}
	made := &Fault{Path: filePath(path), Text: inFileWords.Replace(f.Want)}
	if f.Value != nil {
		made.Text = fmt.Sprintf("= %v: %s", f.Value, made.Text)
	}
	for {
		if at, ok := d.places[path]; ok || path == "" {
			made.Line, made.Column = at.line, at.column
			return made
		}
		path, made.near = parent(path), true
	}
}

// parent cuts the last part off a path of Go fields. A method's name may hold
// anything, so only what follows it is looked at.
func parent(path string) string {
	name := strings.LastIndex(path, `"]`)
	if dot := strings.LastIndexByte(path, '.'); dot > name {
		return path[:dot]
	}
	if name >= 0 {
		return "Methods"
	}
	return ""
}

// filePath returns a path of Go fields as a file has it.
func filePath(path string) string {
	head, rest := "", path
	if name := strings.LastIndex(path, `"]`); name >= 0 {
		head, rest = "m"+path[1:name+2], path[name+2:]
	}
	parts := strings.Split(rest, ".")
	for i, p := range parts {
		parts[i] = snake(p)
	}
	return head + strings.Join(parts, ".")
}
