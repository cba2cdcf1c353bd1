package policyfile

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var write = flag.Bool("write-schema", false, "write schema.json anew")

// The committed schema is what the types and their comments say. To write it anew:
//
//	go test ./policyfile -run TestTheSchemaIsMadeFromTheTypes -write-schema
func TestTheSchemaIsMadeFromTheTypes(t *testing.T) {
	docs := fieldDocs(t)
	made := schemaText(schemaOf(func(typ, field string) string { return docs[typ+"."+field] }))
	if *write {
		require.NoError(t, os.WriteFile("schema.json", made, 0o644))
		return
	}
	require.Equal(t, string(made), string(Schema()))
	require.NotContains(t, string(made), `"description": ""`)

	copied := Schema()
	copied[0] = 'x'
	require.NotEqual(t, copied, Schema(), "a caller gets a copy")
}

// fieldDocs reads the comments on the fields of the kit's configuration.
func fieldDocs(t *testing.T) map[string]string {
	docs := map[string]string{}
	for dir, pkg := range map[string]string{"..": "holdfast", "../retry": "retry", "../breaker": "breaker", "../timeout": "timeout", "../bulkhead": "bulkhead"} {
		names, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						for _, id := range f.Names {
							docs[pkg+"."+spec.Name.Name+"."+id.Name] = flat(f.Doc.Text() + f.Comment.Text())
						}
					}
				}
				return true
			})
		}
	}
	return docs
}

// flat returns a comment as one line of plain text.
func flat(comment string) string {
	var b bytes.Buffer
	p := new(doc.Package).Printer()
	p.TextWidth = -1
	b.Write(p.Text(new(doc.Package).Parser().Parse(strings.NewReplacer("[", "", "]", "").Replace(comment))))
	return strings.Join(strings.Fields(b.String()), " ")
}

func compiled(t require.TestingT) *jsonschema.Schema {
	s, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(schemaID, s))
	compiled, err := c.Compile(schemaID)
	require.NoError(t, err)
	return compiled
}

// The schema accepts a document if and only if the loader accepts its form.
func TestTheSchemaAndTheLoaderAgree(t *testing.T) {
	schema := compiled(t)
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(drawFile(t))
		require.NoError(t, err)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		root, fault := parseJSON(text)
		require.Nil(t, fault)
		d := &decoder{places: map[string]place{}}
		d.root(root, false)
		wrong := ""
		for _, f := range d.faults {
			if f.form {
				wrong = f.Error()
			}
		}
		err = schema.Validate(value)
		require.Equal(t, err == nil, wrong == "", "%s\nschema: %v\nloader: %s", text, err, wrong)
		if err == nil {
			accepted++
		} else {
			refused++
		}
	})
	require.Greater(t, min(accepted, refused), 5, "both were tried")
}

func drawFile(t *rapid.T) any {
	odd := oddities(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "oddities"))
	file := map[string]any{}
	if !odd.now(t) {
		file["wire"] = rapid.SampledFrom([]string{"grpc", "http"}).Draw(t, "wire")
	}
	if rapid.Bool().Draw(t, "name") {
		file["name"] = odd.or(t, "orders")
	}
	if rapid.Bool().Draw(t, "default") {
		file["default"] = drawValue(t, policyShape(), &odd)
	}
	if rapid.Bool().Draw(t, "methods") {
		methods := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(t, "entries") {
			name := rapid.SampledFrom([]string{"a", "GET /x", "pkg.S", "", "1", "<<"}).Draw(t, "entry")
			methods[name] = drawValue(t, policyShape(), &odd)
		}
		file["methods"] = odd.or(t, methods)
	}
	if odd.now(t) {
		file["polices"] = 1
	}
	return file
}

// oddities is how many odd values may still be drawn.
type oddities int

func (o *oddities) now(t *rapid.T) bool {
	if *o == 0 || rapid.IntRange(0, 5).Draw(t, "odd") > 0 {
		return false
	}
	*o--
	return true
}

// or returns v, or now and then something odd.
func (o *oddities) or(t *rapid.T, v any) any {
	if !o.now(t) {
		return v
	}
	return rapid.SampledFrom([]any{
		nil, true, false, 0, 1, -1, 0.5, 1.5, json.Number("1e2"), json.Number("1.0"), json.Number("-0"), json.Number("1e-400"), json.Number("-1e-400"),
		json.Number("12345678901234567890123"), "", "off", "none", "unlimited", "on", "per_target", "full", "5s", "0s", "1m30s", "1.5ms", "-1s", "5", "1d", "5 s", "0.0h0m", ".5s", "5.s", "2µs",
		[]any{}, []any{1}, map[string]any{}, map[string]any{"off": true}, map[string]any{"Window": 1}, "yes", "01", "1_000",
	}).Draw(t, "value")
}

func drawValue(t *rapid.T, s *shape, odd *oddities) any {
	if odd.now(t) {
		all := oddities(1)
		for {
			if v := all.or(t, t); v != t {
				return v
			}
		}
	}
	if len(s.words) > 0 && (s.is == wordsOnly || rapid.IntRange(0, 3).Draw(t, "word") == 0) {
		return rapid.SampledFrom(s.words).Draw(t, "word").text
	}
	switch s.is {
	case toggle:
		return rapid.Bool().Draw(t, "flag")
	case integer:
		return rapid.SampledFrom([]any{1, 7, json.Number("3.0"), json.Number("2e1")}).Draw(t, "integer")
	case decimal:
		return rapid.SampledFrom([]any{0.25, 1, 1e-9, 17.5}).Draw(t, "number")
	case duration:
		return rapid.SampledFrom([]string{"1s", "1h2m3s", "0.5ms", "10us", "00010s"}).Draw(t, "duration")
	}
	fields := map[string]any{}
	for _, f := range s.fields {
		if rapid.IntRange(0, 2).Draw(t, f.name) == 0 {
			fields[f.name] = drawValue(t, f.shape, odd)
		}
	}
	if odd.now(t) {
		fields["more"] = 1
	}
	return fields
}
