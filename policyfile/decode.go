package policyfile

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
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
