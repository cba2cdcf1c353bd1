package depstest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seam is how the docstring of a name begins, after the name, that only packages of the
// module can use.
const seam = " is for the kit's own "

// Of the root package's names, those that take or return what users cannot name say
// that they are not for them, and so does the package's comment.
func TestTheAdaptersPartOfTheKitSaysSo(t *testing.T) {
	decls, overview := declsOf(t, "../..")
	theirs := map[string]bool{}
	for name, d := range decls {
		theirs[name] = saysSo(name, d)
	}
	require.True(t, theirs["Kit.Bind"])
	paragraphs := strings.Split(strings.TrimSpace(overview), "\n\n")
	listed := regexp.MustCompile(`[\w.]*\w`).FindAllString(paragraphs[len(paragraphs)-1], -1)
	for name, d := range decls {
		require.Equal(t, theirs[name], slices.Contains(listed, name), "the end of doc.go is to list %s if and only if it %q", name, seam)
		of, _, _ := strings.Cut(name, ".")
		if theirs[name] || theirs[of] {
			continue
		}
		for _, used := range d.uses {
			require.False(t, theirs[used] || strings.HasPrefix(used, "internal/"),
				"%s shows users %s, which is not for them; its docstring is to begin with %q", name, used, seam)
		}
	}
}

// The other packages show no type of an internal package, but for the methods and
// functions that take or return a reading of the clock, are called so, and say that they
// are not for users.
func TestOtherPackagesShowNothingInternal(t *testing.T) {
	const root = "../.."
	all := 0
	require.NoError(t, filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || dir == root {
			return err
		}
		if slices.Contains([]string{".git", ".ci", "internal", "examples", "testdata", "docs"}, d.Name()) {
			return filepath.SkipDir
		}
		decls, _ := declsOf(t, dir)
		all += len(decls)
		for name, decl := range decls {
			of, _, _ := strings.Cut(name, ".")
			says := saysSo(name, decl) || saysSo(of, decls[of])
			for _, used := range decl.uses {
				require.False(t, strings.HasPrefix(used, "internal/") && !(used == "internal/mono" && strings.HasSuffix(name, "At") && says),
					"%s: %s shows users %s; if it must, its docstring is to begin with %q", dir, name, used, seam)
			}
		}
		return nil
	}))
	require.Greater(t, all, 100)
}

// saysSo reports whether the docstring of a name says that it is not for users.
func saysSo(name string, d decl) bool {
	return strings.HasPrefix(d.doc, name[strings.IndexByte(name, '.')+1:]+seam)
}

// decl is an exported type, function or method.
type decl struct {
	doc  string
	uses []string // the package's own exported types that it shows, and packages as "internal/mono"
}

// declsOf returns the declarations of the package in a folder by name, "Kit.Bind" for a
// method, and the package's comment.
func declsOf(t *testing.T, dir string) (decls map[string]decl, overview string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	decls = map[string]decl{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		overview += file.Doc.Text()
		internal := map[string]bool{}
		for _, i := range file.Imports {
			if p := strings.Trim(i.Path.Value, `"`); strings.Contains(p, "/internal/") {
				internal[path.Base(p)] = true
			}
		}
		ast.FileExports(file)
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					if !ast.IsExported(receiver(d)) {
						continue
					}
					name = receiver(d) + "." + name
				}
				decls[name] = decl{d.Doc.Text(), shown(d.Type, internal)}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						decls[s.Name.Name] = decl{d.Doc.Text(), shown(s.Type, internal)}
					}
				}
			}
		}
	}
	return decls, overview
}

// shown returns what a type or a signature is made of.
func shown(of ast.Expr, internal map[string]bool) (uses []string) {
	ast.Inspect(of, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := e.X.(*ast.Ident); ok && internal[x.Name] {
				uses = append(uses, "internal/"+x.Name)
			}
			return false
		case *ast.Field:
			uses = append(uses, shown(e.Type, internal)...) // and not the names
			return false
		case *ast.Ident:
			uses = append(uses, e.Name)
		}
		return true
	})
	return uses
}
