package policyfile

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

// Whatever a file holds, reading it ends with policies that come back from what is
// written of them and that a kit takes, or with faults that stand in the file. The
// schema has the same opinion of its form.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		allYAML, "", "wire: http", "wire: grpc\n---\n", "\ufeff{\"wire\": \"http\"}", "wire: grpc\ndefault: &a {retry: *a}",
		"wire: http\nmethods:\n  GET /a/{x}: {retry: off}\n  /{y}/b: {timeout: off}\n  GET h.test/: {}\n",
		"{\"wire\": \"grpc\", \"methods\": {\"pkg.S\": {\"breaker\": {\"jitter\": \"none\", \"probes\": 1.0e0}}}}",
		"wire: grpc\nname: |2\n   x\ndefault:\n  ? safety\n  : read_only\n", "%YAML 1.1\n---\nwire: !!str grpc\n",
		"wire: http\ndefault: {breaker: {cooldown: 1h1h1h, slow_call: 0.5us}, bulkhead: {limit: 9007199254740993}}\n",
		"{\"wire\": \"http\", \"default\": {\"timeout\": {\"total\": \"0s\", \"attempt\": \"00.10s\"}}}",
		"wire: grpc\nmethods: {\"/a.B/C\": {}, a.B: {}, a.B/C: {}}\n", "wire: http\nmethods: {<<: {}, ~: {}, '': {}, 010: {}}\n",
	} {
		f.Add([]byte(seed))
	}
	schema := compiled(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := load(text)
		agree(t, schema, text)
		if err != nil {
			faults, ok := errors.AsType[*Error](err)
			require.True(t, ok)
			require.NotEmpty(t, faults.Faults)
			for _, fault := range faults.Faults {
				require.NotEmpty(t, fault.Text)
				require.Positive(t, min(fault.Line, fault.Column), "%v", fault)
				require.LessOrEqual(t, fault.Line, lines(text)+1, "%v", fault)
			}
			return
		}
		require.Contains(t, []string{"grpc", "http"}, file.Wire)
		_, err = holdfast.New(file.Config)
		require.NoError(t, err)
		for _, format := range []func() ([]byte, error){file.YAML, file.JSON} {
			written, err := format()
			require.NoError(t, err)
			again, err := load(written)
			require.NoError(t, err, "%s", written)
			require.Equal(t, file, again, "%s", written)
		}
	})
}

// lines counts the lines of a text, with all that YAML takes for an end of one.
func lines(text []byte) int {
	ends := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(string(text))
	return 1 + strings.Count(ends, "\n")
}

// agree holds the schema against the loader, for a text in JSON.
func agree(t *testing.T, schema *jsonschema.Schema, text []byte) {
	root, isJSON, fault := parse(text)
	if !isJSON || fault != nil || len(text) > 10_000 {
		return
	}
	d := &decoder{places: map[string]place{}}
	d.root(root, false)
	wrong := ""
	for _, f := range d.faults {
		if f.form {
			wrong = f.Error()
		}
		if strings.Contains(f.Text, "twice") || strings.Contains(f.Text, "out of range") || strings.Contains(f.Text, "too small") {
			return // a schema is told of one of two fields, and has numbers without end
		}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	require.NoError(t, err)
	require.Equal(t, schema.Validate(value) == nil, wrong == "", "%s\nloader: %s", text, wrong)
}
