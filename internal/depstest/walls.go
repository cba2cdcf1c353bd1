package depstest

// Module is the module's path.
const Module = "github.com/holdfast-go/holdfast"

// A layer is a place in the order of imports. A package imports packages of
// lower layers only, and inside its own folder a package imports those above
// it: breaker/redisstore imports breaker.
type layer int

const (
	ground      layer = iota // the vocabulary; imports nothing of ours
	tools                    // internal helpers
	parts                    // breaker, retry, ...: none knows another
	derived                  // what builds on a part: a fallback, another instance, the contexts of limits
	kit                      // the root package, and what the adapters need beside it
	adapters                 // the wires and what else is attached to a kit
	users                    // examples
	testSupport              // imported by tests only
)

var layerNames = map[layer]string{
	ground:      "the vocabulary",
	tools:       "an internal helper",
	parts:       "a part",
	derived:     "what builds on a part",
	kit:         "the kit",
	adapters:    "an adapter",
	users:       "an example",
	testSupport: "test support",
}

// layers places folders and all below them; the longest name that fits counts.
// The root package is "". A place may wait for its package.
var layers = map[string]layer{
	"call": ground,

	"internal":          tools,
	"internal/memnet":   testSupport,
	"internal/logbook":  testSupport,
	"internal/depstest": testSupport,
	"internal/chaos":    testSupport,

	"breaker":             parts,
	"breaker/breakertest": testSupport,
	"retry":               parts,
	"timeout":             parts,
	"bulkhead":            parts,
	"fallback":            derived,
	"internal/deadline":   derived,
	"internal/instance":   derived,
	"outlier":             parts,
	"":                    kit,
	"internal/answers":    kit,
	"grpcmw":              adapters,
	"httpmw":              adapters,
	"telemetry":           adapters,
	"policyfile":          adapters,
	"examples":            users,
}

// A door is one import that a wall forbids and that is allowed all the same.
type door struct{ from, to, why string }

var doors = []door{
	{"examples/outage", "breaker/breakertest", "it plays a fleet, whose store in memory is there"},
}

// A dependency is a module, or a family of modules, from elsewhere.
type dependency struct {
	prefix string   // of the import path
	where  []string // folders whose packages may import it, those below included
	why    string
}

// dependencies is all that comes from elsewhere. The examples may import
// what a user would.
var dependencies = []dependency{
	{"google.golang.org/grpc", []string{"grpcmw", "internal/memnet/memgrpc", "examples"}, grpcWall},
	{"google.golang.org/protobuf", []string{"grpcmw", "internal/memnet/memgrpc", "examples"}, grpcWall},
	{"google.golang.org/genproto", []string{"grpcmw", "examples"}, grpcWall},
	{"github.com/hashicorp/go-retryablehttp", []string{"httpmw/retryable", "examples"},
		"only its own users need it"},
	{"github.com/redis/go-redis", []string{"breaker/redisstore", "examples"},
		"a breaker without shared state needs no Redis client"},
	{"github.com/maypok86/otter", []string{"fallback/memory", "examples"},
		"whoever keeps no stale answers, or keeps them elsewhere, needs no cache"},
	{"go.yaml.in/yaml", []string{"policyfile", "examples"},
		"policies in code need no YAML"},
	{"go.opentelemetry.io", []string{"telemetry", "examples"},
		"the adapters feed telemetry through hooks, so that whoever has no OpenTelemetry builds without it"},

	{"github.com/stretchr/testify", nil, testWall},
	{"pgregory.net/rapid", nil, testWall},
	{"github.com/santhosh-tekuri/jsonschema", nil, testWall},
	{"github.com/anishathalye/porcupine", nil, testWall},
	{"github.com/alicebob/miniredis", []string{"examples"},
		"in tests, and in the example that runs a store of its own where none is installed"},
	{"github.com/prometheus", nil, testWall},
	{"github.com/chromedp", nil, testWall},
	{"golang.org/x/net", []string{"internal/memnet/memframes"}, testWall},
}

const (
	grpcWall = "whoever protects HTTP or a database must not have to build gRPC"
	testWall = "a user of the kit must not have to build what only its tests need"
)
