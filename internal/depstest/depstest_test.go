package depstest_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/depstest"
)

func module(t *testing.T) fs.FS {
	t.Helper()
	root, err := depstest.Root()
	require.NoError(t, err)
	return os.DirFS(root)
}

func TestTheModuleKeepsItsWalls(t *testing.T) {
	imports, err := depstest.Imports(module(t))
	require.NoError(t, err)
	// The reader must not have passed by the files.
	for _, want := range []depstest.Import{
		{From: depstest.Module + "/call", File: "call/call.go", Path: "time"},
		{From: depstest.Module + "/internal/depstest", File: "internal/depstest/depstest_test.go", Path: "testing", Test: true},
	} {
		require.Contains(t, imports, want)
	}
	for _, broken := range depstest.Check(imports) {
		t.Error(broken)
	}
}

// D011, the static part.
func TestD011_NoTimeIsMeasuredByTheWallClock(t *testing.T) {
	found, err := depstest.WallClock(module(t))
	require.NoError(t, err)
	for _, use := range found {
		t.Error(use)
	}
}

// TestAPlantedViolationIsFound has one import a line: who, what, and a part of
// the complaint, or "ok".
func TestAPlantedViolationIsFound(t *testing.T) {
	for _, step := range []struct{ from, path, want string }{
		// Standard library only.
		{"call", "time", "ok"},
		{"breaker", "sync/atomic", "ok"},
		{"breaker", "google.golang.org/grpc", "only in grpcmw, internal/memnet/memgrpc, examples: whoever protects HTTP"},
		{"", "google.golang.org/grpc/codes", "only in grpcmw"},
		{"httpmw", "google.golang.org/protobuf/proto", "only in grpcmw"},
		{"internal/wire", "google.golang.org/grpc", "only in grpcmw"},
		{"internal/memnet", "google.golang.org/grpc", "only in grpcmw"},
		{"grpcmw", "google.golang.org/grpc/status", "ok"},
		{"grpcmw", "google.golang.org/protobuf/reflect/protoregistry", "ok"},
		{"internal/memnet/memgrpc", "google.golang.org/grpc", "ok"},
		{"examples/internal/shop/shopv1", "google.golang.org/grpc", "ok"},

		// Layers.
		{"call", "+internal/mono", "an arrow back: the vocabulary may not know an internal helper"},
		{"breaker", "+call", "ok"},
		{"breaker", "+internal/mono", "ok"},
		{"internal/wire", "+call", "ok"},
		{"internal/wire", "+internal/mono", "ok"},
		{"internal/wire", "+breaker", "an arrow back"},
		{"breaker", "+retry", "each is a part, and those stand side by side"},
		{"retry", "+fallback", "an arrow back"},
		{"fallback", "+breaker", "ok"},
		{"fallback", "+", "an arrow back: what builds on a part may not know the kit"},
		{"timeout", "+", "an arrow back: a part may not know the kit"},
		{"", "+fallback", "ok"},
		{"", "+internal/deadline", "ok"},
		{"", "+internal/answers", "each is the kit"},
		{"httpmw", "+internal/answers", "ok"},
		{"internal/answers", "+fallback", "ok"},
		{"fallback", "+internal/answers", "an arrow back"},
		{"internal/deadline", "+timeout", "ok"},
		{"timeout", "+internal/deadline", "an arrow back: a part may not know what builds on a part"},
		{"", "+grpcmw", "an arrow back: the kit may not know an adapter"},
		{"", "+internal/check", "ok"},
		{"grpcmw", "+", "ok"},
		{"grpcmw", "+retry", "ok"},
		{"grpcmw", "+httpmw", "side by side"},
		{"telemetry", "+grpcmw", "side by side"},
		{"policyfile", "+examples/policycheck", "an arrow back"},
		{"examples/grpc", "+grpcmw", "ok"},
		{"examples/grpc", "+examples/internal/shop", "ok"},
		{"", "+examples/internal/shop", "an arrow back"},
		{"breaker/redisstore", "+breaker", "ok"},
		{"breaker", "+breaker/redisstore", "does not import what lies below it"},
		{"httpmw/retryable", "+httpmw", "ok"},
		{"httpmw", "+httpmw/retryable", "does not import what lies below it"},
		{"breaker/redisstore", "+", "an arrow back"},

		// Test support.
		{"httpmw", "+internal/memnet", "test support is for tests"},
		{"httpmw t", "+internal/memnet", "ok"},
		{"breaker", "+breaker/breakertest", "test support is for tests"},
		{"breaker/breakertest", "+breaker", "ok"},
		{"internal/memnet/memgrpc", "+internal/memnet", "ok"},
		{"examples/http", "+internal/memnet", "test support is for tests"},
		{"examples/http", "+breaker/breakertest", "test support is for tests"},
		{"examples/outage", "+breaker/breakertest", "ok"}, // by a door
		{"examples/outage", "+internal/memnet", "test support is for tests"},

		// Other dependencies.
		{"breaker", "github.com/stretchr/testify/require", "in tests only: a user of the kit"},
		{"breaker/breakertest", "github.com/stretchr/testify/require", "in tests only"},
		{"breaker t", "github.com/stretchr/testify/require", "ok"},
		{"retry", "pgregory.net/rapid", "in tests only"},
		{"bulkhead t", "github.com/anishathalye/porcupine", "ok"},
		{"httpmw", "golang.org/x/net/http2", "only in internal/memnet/memframes"},
		{"httpmw", "github.com/hashicorp/go-retryablehttp", "only in httpmw/retryable"},
		{"httpmw/retryable", "github.com/hashicorp/go-retryablehttp", "ok"},
		{"breaker", "github.com/redis/go-redis/v9", "only in breaker/redisstore"},
		{"breaker/redisstore", "github.com/redis/go-redis/v9", "ok"},
		{"grpcmw", "go.opentelemetry.io/otel", "through hooks"},
		{"telemetry", "go.opentelemetry.io/otel/metric", "ok"},
		{"", "go.yaml.in/yaml/v3", "only in policyfile"},
		{"grpcmw", "github.com/sony/gobreaker", "no wall names this dependency"},
		{"breaker t", "github.com/sony/gobreaker", "no wall names this dependency"},
		{"breaker", "google.golang.org/grpcx", "no wall names this dependency"},

		// Packages without a place.
		{"utils", "fmt", "the importing package has no place among the layers"},
		{"breaker", "+utils", "the imported package has no place among the layers"},
		{"breakers", "+call", "the importing package has no place among the layers"},
	} {
		from, test := strings.CutSuffix(step.from, " t")
		i := depstest.Import{From: full(from), File: "x.go", Path: step.path, Test: test}
		if own, ok := strings.CutPrefix(step.path, "+"); ok {
			i.Path = full(own)
		}
		broken := depstest.Check([]depstest.Import{i})
		if step.want == "ok" {
			require.Empty(t, broken)
			continue
		}
		require.Len(t, broken, 1, "%s imports %s", step.from, step.path)
		require.True(t, strings.HasPrefix(broken[0], i.From+" imports "+i.Path+" (in x.go): "), broken[0])
		require.Contains(t, broken[0], step.want)
	}
}

func full(folder string) string {
	return strings.TrimSuffix(depstest.Module+"/"+folder, "/")
}

func TestAPlantedViolationIsFoundInFiles(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	planted := fstest.MapFS{
		"go.mod":                      file("module x"),
		"kit.go":                      file("package holdfast\nimport _ \"google.golang.org/grpc\"\n"),
		"retry/other_windows.go":      file("//go:build windows\n\npackage retry\nimport (\n\t\"fmt\"\n\tr \"pgregory.net/rapid\"\n)\n"),
		"retry/retry_test.go":         file("package retry_test\nimport \"pgregory.net/rapid\"\n"),
		"retry/testdata/x.go":         file("package broken\nimport \"no.such/thing\"\n"),
		"retry/_old/x.go":             file("package old\nimport \"no.such/thing\"\n"),
		"internal/bench/go.mod":       file("module bench"),
		"internal/bench/bench.go":     file("package bench\nimport \"github.com/sony/gobreaker\"\n"),
		"internal/bench/sub/bench.go": file("package bench\nimport \"github.com/sony/gobreaker\"\n"),
	}
	imports, err := depstest.Imports(planted)
	require.NoError(t, err)
	broken := depstest.Check(imports)
	require.Len(t, broken, 2, strings.Join(broken, "\n"))
	require.Contains(t, broken[0], "holdfast imports google.golang.org/grpc (in kit.go)")
	require.Contains(t, broken[1], "holdfast/retry imports pgregory.net/rapid (in retry/other_windows.go)")

	planted["call/broken.go"] = file("no Go")
	_, err = depstest.Imports(planted)
	require.ErrorContains(t, err, "call/broken.go")
}

func TestAPlantedWallClockIsFound(t *testing.T) {
	source := &fstest.MapFile{Data: []byte(`package p

import "time"

var begin = time.Now().UnixNano() // UnixNano in a comment is none

func elapsed() int64 { return time.Now().UnixMilli() - begin }
`)}
	found, err := depstest.WallClock(fstest.MapFS{
		"run.go":                      source,
		"breaker/breaker.go":          source,
		"breaker/breaker_test.go":     source,
		"breaker/redisstore/store.go": source,
		"examples/quickstart/main.go": source,
		"retry/ok.go":                 {Data: []byte("package retry\n\nimport \"time\"\n\nvar t = time.Now().Add(time.Second)\n")},
	})
	require.NoError(t, err)
	require.Len(t, found, 4)
	require.Contains(t, found[0], "breaker/breaker.go uses UnixNano")
	require.Contains(t, found[3], "run.go uses UnixMilli")
}
