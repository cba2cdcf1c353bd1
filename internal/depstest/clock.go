package depstest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"io/fs"
	"path"
	"strings"
)

// monotonic are the folders that measure time: their own files, not those of
// the folders below, where a shared store has a clock of its own.
var monotonic = []string{
	".", "breaker", "retry", "bulkhead", "timeout", "fallback",
	"internal/answers", "internal/deadline", "internal/instance", "internal/keyed", "internal/latency",
}

// WallClock returns a line for each place outside tests where a package that
// measures time turns one into a number of units since 1970. Such a number
// jumps when somebody sets the clock; elapsed time is the difference of two
// mono.Instants.
func WallClock(module fs.FS) ([]string, error) {
	measures := map[string]bool{}
	for _, dir := range monotonic {
		measures[dir] = true
	}
	var found []string
	err := eachFile(module, parser.SkipObjectResolution, func(name string, f *ast.File) error {
		if !measures[path.Dir(name)] || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		ast.Inspect(f, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if ok && strings.HasPrefix(selector.Sel.Name, "Unix") {
				found = append(found, fmt.Sprintf(
					"%s uses %s: it follows the wall clock, which jumps; measure with mono.Instant", name, selector.Sel.Name))
			}
			return true
		})
		return nil
	})
	return found, err
}
