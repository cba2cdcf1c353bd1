package policyfile

import (
	"fmt"
	"reflect"

	"github.com/holdfast-go/holdfast"
)

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
