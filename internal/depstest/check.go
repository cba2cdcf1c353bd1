package depstest

import (
	"fmt"
	"slices"
	"strings"
)

// An Import is one import in one file.
type Import struct {
	From string // path of the importing package
	File string // that imports it, by its path in the module
	Path string // of the imported package
	Test bool   // the file is a test
}

// Check returns a line for each wall that an import breaks. It says which
// package imports what, where, and why that is a wall.
func Check(imports []Import) []string {
	var broken []string
	for _, i := range imports {
		if why := check(i); why != "" {
			broken = append(broken, fmt.Sprintf("%s imports %s (in %s): %s", i.From, i.Path, i.File, why))
		}
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

func check(i Import) string {
	from, ours := folder(i.From)
	if !ours {
		return "it is no package of " + Module
	}
	fromLayer, placed := place(from)
	if !placed {
		return "the importing package has no place among the layers; give it one in internal/depstest"
	}
	to, ours := folder(i.Path)
	switch {
	case ours && i.Test:
		return "" // the compiler forbids the circles
	case ours:
		return checkOwn(from, fromLayer, to)
	case standard(i.Path):
		return ""
	default:
		return checkDependency(from, i)
	}
}

func checkOwn(from string, fromLayer layer, to string) string {
	toLayer, placed := place(to)
	switch {
	case !placed:
		return "the imported package has no place among the layers; give it one in internal/depstest"
	case slices.ContainsFunc(doors, func(d door) bool { return d.from == from && d.to == to }):
		return ""
	case toLayer == testSupport && fromLayer != testSupport:
		return "test support is for tests"
	case fromLayer == tools && toLayer == tools, fromLayer == users && toLayer == users,
		fromLayer == testSupport:
		return ""
	case from != "" && within(to, from):
		return "a package does not import what lies below it, or its users would get that too"
	case to != "" && within(from, to), toLayer < fromLayer:
		return ""
	case toLayer == fromLayer:
		return fmt.Sprintf("each is %s, and those stand side by side: none knows another", layerNames[toLayer])
	default:
		return fmt.Sprintf("an arrow back: %s may not know %s", layerNames[fromLayer], layerNames[toLayer])
	}
}

func checkDependency(from string, i Import) string {
	for _, d := range dependencies {
		if !within(i.Path, d.prefix) {
			continue
		}
		if i.Test || slices.ContainsFunc(d.where, func(dir string) bool { return within(from, dir) }) {
			return ""
		}
		if len(d.where) == 0 {
			return "in tests only: " + d.why
		}
		return fmt.Sprintf("only in %s: %s", strings.Join(d.where, ", "), d.why)
	}
	return "no wall names this dependency; if the module is to have it, say in internal/depstest where and why"
}

// folder returns a package's folder in the module, "" for the root.
func folder(path string) (string, bool) {
	if path == Module {
		return "", true
	}
	return strings.CutPrefix(path, Module+"/")
}

// place returns the layer of a folder. Only the root itself is placed by the
// root's entry.
func place(folder string) (layer, bool) {
	best, found := "", folder == ""
	for name := range layers {
		if name != "" && within(folder, name) && len(name) > len(best) {
			best, found = name, true
		}
	}
	return layers[best], found
}

// within reports whether path is prefix or lies below it. A major version is
// part of the name: github.com/x/y/v2 lies below github.com/x/y.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// standard reports whether a package is of the standard library: its path
// begins with no host name.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
