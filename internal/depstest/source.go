package depstest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Root returns the folder of the module that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("depstest: no go.mod above the working directory")
		}
		dir = up
	}
}

// Imports returns the imports of every Go file of the module. Nested modules,
// testdata and what else the go command leaves out are left out.
func Imports(module fs.FS) ([]Import, error) {
	var imports []Import
	err := eachFile(module, parser.ImportsOnly, func(name string, f *ast.File) error {
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, Import{
				From: path.Join(Module, path.Dir(name)),
				File: name,
				Path: imported,
				Test: strings.HasSuffix(name, "_test.go"),
			})
		}
		return nil
	})
	return imports, err
}

func eachFile(module fs.FS, mode parser.Mode, do func(name string, f *ast.File) error) error {
	return fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		hidden := name != "." && (base[0] == '.' || base[0] == '_')
		switch {
		case err != nil:
			return err
		case d.IsDir():
			_, err := fs.Stat(module, path.Join(name, "go.mod"))
			if hidden || base == "testdata" || base == "vendor" || name != "." && err == nil {
				return fs.SkipDir
			}
			return nil
		case hidden || !strings.HasSuffix(name, ".go"):
			return nil
		}
		source, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, source, mode)
		if err != nil {
			return err
		}
		return do(name, f)
	})
}
