package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/check"
)

// fields reads the fields of a YAML mapping, and finds those that nobody asked for.
type fields struct {
	path   string // of the mapping, with a dot at its end
	values map[string]*yaml.Node
	asked  []string
	faults *check.Faults
}

// fieldsOf reads the one mapping of a document.
func fieldsOf(text []byte, faults *check.Faults) *fields {
	var doc yaml.Node
	f := &fields{faults: faults}
	switch err := yaml.Unmarshal(text, &doc); {
	case err != nil:
		faults.Add("file", nil, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	case len(doc.Content) == 0:
		faults.Add("file", nil, "is empty")
	default:
		f.read(doc.Content[0])
	}
	return f
}

func (f *fields) read(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		f.faults.Add(strings.TrimSuffix(f.path, ".")+place(n), shown(n), "must be a mapping of fields")
		return
	}
	f.values = map[string]*yaml.Node{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if f.values[name] != nil {
			f.faults.Add(f.path+name, shown(n.Content[i+1]), "stands there twice, again%s", place(n.Content[i]))
			continue
		}
		f.values[name] = n.Content[i+1]
	}
}

// place says where a node is.
func place(n *yaml.Node) string { return fmt.Sprintf(" (line %d)", n.Line) }

func shown(n *yaml.Node) any {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return nil
}

// get returns the scalar of a field, "" and false if it is not there.
func (f *fields) get(name string) (*yaml.Node, bool) {
	f.asked = append(f.asked, name)
	n := f.values[name]
	if n == nil {
		return nil, false
	}
	if n.Kind != yaml.ScalarNode {
		f.faults.Add(f.path+name, nil, "must be one value%s", place(n))
		return nil, false
	}
	return n, true
}

func (f *fields) bad(name string, n *yaml.Node, want string, args ...any) {
	f.faults.Add(f.path+name, n.Value, "%s%s", fmt.Sprintf(want, args...), place(n))
}

// text reads a text, one of the values if there are any.
func (f *fields) text(name string, into *string, values ...string) bool {
	n, ok := f.get(name)
	if !ok {
		return false
	}
	if n.Value == "" || len(values) > 0 && !slices.Contains(values, n.Value) {
		want := "must not be empty"
		if len(values) > 0 {
			want = "must be one of " + strings.Join(values, ", ")
		}
		f.bad(name, n, "%s", want)
		return false
	}
	*into = n.Value
	return true
}

// number reads a number between low, exclusive, and high.
func (f *fields) number(name string, into *float64, low, high float64) bool {
	n, ok := f.get(name)
	if !ok {
		return false
	}
	v, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || !(v > low && v <= high) { // also what is not a number
		f.bad(name, n, "must be a number above %g, at most %g", low, high)
		return false
	}
	*into = v
	return true
}

// whole reads a whole number of at least low.
func (f *fields) whole(name string, into *int, low, high int) bool {
	n, ok := f.get(name)
	if !ok {
		return false
	}
	v, err := strconv.Atoi(n.Value)
	if err != nil || v < low || v > high {
		f.bad(name, n, "must be a whole number from %d to %d", low, high)
		return false
	}
	*into = v
	return true
}

// duration reads a positive duration, or with zero one of at least 0.
func (f *fields) duration(name string, into *time.Duration, zero bool) bool {
	n, ok := f.get(name)
	if !ok {
		return false
	}
	d, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		f.bad(name, n, "must be a duration such as 250ms or 1m30s")
	case d < 0 || d == 0 && !zero:
		f.bad(name, n, "must be positive")
	case d > time.Hour:
		f.bad(name, n, "must be an hour at most")
	default:
		*into = d
		return true
	}
	return false
}

// within returns the fields of a mapping inside.
func (f *fields) within(name string) *fields {
	f.asked = append(f.asked, name)
	inner := &fields{path: f.path + name + ".", faults: f.faults}
	if n := f.values[name]; n != nil {
		inner.read(n)
	}
	return inner
}

// missing notes a field that must be there and is not; bad ones are noted already.
func (f *fields) missing(name, want string) {
	if f.values != nil && f.values[name] == nil {
		f.faults.Add(f.path+name, nil, "is missing: %s", want)
	}
}

// rest notes the fields that nobody asked for.
func (f *fields) rest(why string) {
	for name, n := range sorted(f.values) {
		if !slices.Contains(f.asked, name) {
			f.faults.Add(f.path+name+place(n), shown(n), "%s", why)
		}
	}
}
