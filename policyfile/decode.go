package policyfile

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// decoder reads nodes into a configuration. It notes each fault and goes on.
type decoder struct {
	faults []*Fault
	places map[string]place // of the values read, by the path of Go fields
}

func (d *decoder) add(n *node, path, format string, args ...any) {
	f := faultAt(n.place, format, args...)
	f.Path = filePath(path)
	d.faults = append(d.faults, f)
}

// members returns the values of a mapping by their names, nil if n is no mapping.
// Each name stands once, and is one of names, if that is not nil.
func (d *decoder) members(n *node, path, want string, names []string) map[string]*node {
	if !d.is(n, path, mapping, want) {
		return nil
	}
	found := map[string]*node{}
	for _, p := range n.pairs {
		switch key := p.key.text; {
		case p.key.fault != "":
			d.add(p.key, path, "%s", p.key.fault)
		case key == "<<":
			d.add(p.key, path, "<< is not read: a layer that is set replaces the inherited one whole; use an alias for all of it")
		case p.key.kind != text:
			d.add(p.key, path, "has the field %q, which is %v; a name is a text, in quotes if it looks like something else", key, p.key.kind)
		case found[key] != nil:
			d.add(p.key, path, "has the field %q twice", key)
		case names == nil || slices.Contains(names, key):
			found[key] = p.value
		default:
			if near := nearest(key, names); near != "" {
				d.add(p.key, path, "has no field %q (did you mean %s?)", key, near)
			} else {
				d.add(p.key, path, "has no field %q; there are %s", key, listed(names))
			}
		}
	}
	return found
}

// is reports whether a value is of that kind, and adds a fault if not.
func (d *decoder) is(n *node, path string, k kind, want string) bool {
	switch {
	case n.fault != "":
		d.add(n, path, "%s", n.fault)
	case n.kind == k:
		return true
	case n.kind == null:
		d.add(n, path, "has no value; it must be %s, or be left out", want)
	case n.kind == mapping || n.kind == sequence:
		d.add(n, path, "is %v; it must be %s", n.kind, want)
	default:
		d.add(n, path, "= %s: is %v; it must be %s", shown(n), n.kind, want)
	}
	return false
}

// shown returns a scalar as its file has it.
func shown(n *node) string {
	s := n.text
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	if n.kind == text {
		return strconv.Quote(s)
	}
	return s
}

// decode reads a value of that shape into v, which is a pointer or not.
func (d *decoder) decode(n *node, s *shape, path string, v reflect.Value) {
	d.places[path] = n.place
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(s.typ))
		v = v.Elem()
	}
	if n.kind == text && n.fault == "" {
		for _, w := range s.words {
			if w.text == n.text {
				v.Set(w.value)
				return
			}
		}
	}
	switch s.is {
	case group:
		d.group(n, s, path, v)
	case wordsOnly:
		d.word(n, s, path)
	case toggle:
		if d.bool(n, s, path) {
			v.SetBool(n.text == "true")
		}
	case duration:
		if t, ok := d.duration(n, s, path); ok {
			v.SetInt(int64(t))
		}
	case integer:
		if f, ok := d.number(n, s, path); ok && whole(n.text, f) {
			d.integer(n, path, v)
		} else if ok {
			d.add(n, path, "= %s: must be an integer", shown(n))
		}
	case decimal:
		if f, ok := d.number(n, s, path); ok {
			v.SetFloat(f)
		}
	}
}

func (d *decoder) group(n *node, s *shape, path string, v reflect.Value) {
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
	}
	want := s.String()
	if n.kind == boolean && n.text == "false" && len(s.words) > 0 && s.words[0].text == "off" {
		d.add(n, path, "= false: is a boolean; write off")
		return
	}
	found := d.members(n, path, want, names)
	for _, f := range s.fields {
		if value := found[f.name]; value != nil {
			d.decode(value, f.shape, path+"."+f.goes, v.Field(f.index))
		}
	}
}

func (d *decoder) word(n *node, s *shape, path string) {
	if !d.is(n, path, text, s.String()) {
		return
	}
	var words []string
	for _, w := range s.words {
		words = append(words, w.text)
	}
	if near := nearest(n.text, words); near != "" {
		d.add(n, path, "= %s: must be %s (did you mean %s?)", shown(n), s, near)
		return
	}
	d.add(n, path, "= %s: must be %s", shown(n), s)
}

func (d *decoder) bool(n *node, s *shape, path string) bool {
	if n.kind == text && n.fault == "" {
		switch strings.ToLower(n.text) {
		case "yes", "no", "on", "off", "y", "n", "true", "false":
			d.add(n, path, "= %s: is a text here, though other programs read it as a boolean; write true or false", shown(n))
			return false
		}
	}
	return d.is(n, path, boolean, s.String())
}

// number reads a number above 0, or 0 where that means something.
func (d *decoder) number(n *node, s *shape, path string) (float64, bool) {
	if odd := oddNumber(n.text); n.kind == text && n.fault == "" && odd != "" {
		d.add(n, path, "= %s: %s", n.text, odd)
		return 0, false
	}
	if !d.is(n, path, number, s.String()) {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.text, 64)
	switch {
	case err != nil:
		d.value(n, path, "is out of range")
	case f == 0 && strings.ContainsAny(n.text[:mantissa(n.text)], "123456789") && s.is == decimal && n.text[0] != '-':
		d.value(n, path, "is too small for a number")
	case f < 0 || f == 0 && !s.zero:
		d.notAboveZero(n, s, path, f == 0)
	default:
		return f, true
	}
	return 0, false
}

// whole reports whether a number, which is about f, is an integer. 1.0 and 1e3 are.
func whole(written string, f float64) bool {
	if _, after, ok := strings.Cut(written, "."); ok && mantissa(written) == len(written) {
		return strings.Trim(after, "0") == ""
	}
	return f == math.Trunc(f)
}

// mantissa returns where the exponent of a number begins.
func mantissa(s string) int {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return i
	}
	return len(s)
}

// value adds a fault of what is said, not of how.
func (d *decoder) value(n *node, path, text string) {
	d.add(n, path, "= %s: %s", shown(n), text)
	d.faults[len(d.faults)-1].form = false
}

func (d *decoder) notAboveZero(n *node, s *shape, path string, zero bool) {
	instead := ""
	if len(s.words) > 0 && s.words[0].text == "none" {
		instead = "; write none if that is meant"
	}
	switch {
	case zero:
		d.add(n, path, "= %s: has no meaning of its own; leave it out for the default%s", n.text, instead)
	case s.zero:
		d.add(n, path, "= %s: must not be negative", n.text)
	default:
		d.add(n, path, "= %s: must be above 0%s", n.text, instead)
	}
}

// integer sets an integer, which may be written as 1e3 too.
func (d *decoder) integer(n *node, path string, v reflect.Value) {
	i, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil {
		f, _ := strconv.ParseFloat(n.text, 64)
		if f >= 1<<53 {
			d.value(n, path, "is out of range")
			return
		}
		i = int64(f)
	}
	v.SetInt(i)
}

const durationForm = `^([0-9]+(\.[0-9]+)?(h|m|s|ms|us|µs|ns))+$`

var durations = regexp.MustCompile(durationForm)

func (d *decoder) duration(n *node, s *shape, path string) (time.Duration, bool) {
	switch {
	case n.kind == number:
		unit := n.text
		d.add(n, path, "= %s: is a number without a unit; write %ss or %sms", unit, unit, unit)
		return 0, false
	case !d.is(n, path, text, s.String()):
		return 0, false
	case strings.HasPrefix(n.text, "-") && durations.MatchString(n.text[1:]):
		d.notAboveZero(n, s, path, false)
		return 0, false
	case !durations.MatchString(n.text):
		d.add(n, path, "= %s: is no duration; it is numbers with units (h, m, s, ms, us, ns), as in 1m30s or 1.5s", shown(n))
		return 0, false
	}
	t, err := time.ParseDuration(n.text)
	switch {
	case err != nil:
		d.value(n, path, "is longer than a duration can be, 290 years")
	case t == 0 && strings.ContainsAny(n.text, "123456789"):
		d.value(n, path, "is shorter than a nanosecond")
	case t == 0 && !s.zero:
		d.notAboveZero(n, s, path, true)
	default:
		return t, true
	}
	return 0, false
}

// root reads a whole file.
func (d *decoder) root(n *node, ordered bool) *File {
	f := &File{}
	d.places[""], d.places["Default"], d.places["Methods"] = n.place, n.place, n.place
	found := d.members(n, "", "a group of fields: wire, name, default, methods", []string{"wire", "name", "default", "methods"})
	if found == nil {
		return f
	}
	d.wire(n, found["wire"], f, ordered)
	if name := found["name"]; name != nil {
		d.places["Name"] = name.place
		if d.is(name, "Name", text, "a text, in quotes if it looks like something else") {
			if f.Name = name.text; f.Name == "" {
				d.add(name, "Name", "is empty; leave it out for the default")
			}
		}
	}
	if p := found["default"]; p != nil {
		d.decode(p, policyShape(), "Default", reflect.ValueOf(&f.Default).Elem())
	}
	if methods := found["methods"]; methods != nil {
		d.places["Methods"] = methods.place
		for _, pair := range d.methods(methods) {
			if f.Methods == nil {
				f.Methods = map[string]holdfast.Policy{}
			}
			var p holdfast.Policy
			d.decode(pair.value, policyShape(), fmt.Sprintf("Methods[%q]", pair.key.text), reflect.ValueOf(&p).Elem())
			f.Methods[pair.key.text] = p
			// What is wrong with an entry as a whole is wrong with its name.
			d.places[fmt.Sprintf("Methods[%q]", pair.key.text)] = pair.key.place
		}
	}
	return f
}

// methods returns the entries of the table, in the file's order.
func (d *decoder) methods(n *node) []pair {
	found := d.members(n, "Methods", "a group of policies by their methods' names", nil)
	var pairs []pair
	for _, p := range n.pairs {
		if found[p.key.text] == p.value {
			pairs = append(pairs, p)
			delete(found, p.key.text) // a second one of the name was told of
		}
	}
	return pairs
}

func (d *decoder) wire(root, n *node, f *File, ordered bool) {
	const want = "grpc or http"
	switch {
	case n == nil:
		d.add(root, "", "has no field wire; the first line is wire: grpc or wire: http")
	case !d.is(n, "Wire", text, want):
	case n.text != "grpc" && n.text != "http":
		d.add(n, "Wire", "= %s: must be %s", shown(n), want)
	case ordered && root.pairs[0].value != n:
		d.add(n, "Wire", "must come first: it says how the names are read")
	default:
		f.Wire = n.text
	}
}
