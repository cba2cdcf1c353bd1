package depstest_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var writeAPI = flag.Bool("write-api", false, "write docs/api.txt anew")

// docs/api.txt is all that is exported. Whoever changes it sees in review what
// users will see.
func TestTheAPIIsTheOneWrittenDown(t *testing.T) {
	const root, page = "../..", "../../docs/api.txt"
	var found strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch d.Name() {
		case ".git", ".ci", "internal", "examples", "testdata", "docs":
			return filepath.SkipDir
		}
		found.WriteString(exported(t, root, name))
		return nil
	}))
	if *writeAPI {
		require.NoError(t, os.WriteFile(page, []byte(found.String()), 0o644))
	}
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	was, is := strings.Split(string(written), "\n"), strings.Split(found.String(), "\n")
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			t.Fatalf("docs/api.txt:%d is not the API any more; if that is meant: go test ./internal/depstest -write-api", i+1)
		}
	}
}

// exported returns what a package exports, without comments and bodies.
func exported(t *testing.T, root, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	files := token.NewFileSet()
	var lines []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.FileExports(file)
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				if f.Recv != nil && !ast.IsExported(receiver(f)) {
					continue
				}
				f.Body = nil
			}
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
				continue
			}
			var text bytes.Buffer
			require.NoError(t, printer.Fprint(&text, token.NewFileSet(), decl))
			lines = append(lines, text.String())
		}
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	rel, err := filepath.Rel(root, dir)
	require.NoError(t, err)
	return fmt.Sprintf("package %s\n\n%s\n\n\n", filepath.ToSlash(filepath.Join("holdfast", rel)), strings.Join(lines, "\n"))
}

// receiver returns the name of a method's type.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	for {
		switch e := of.(type) {
		case *ast.StarExpr:
			of = e.X
		case *ast.IndexExpr:
			of = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
