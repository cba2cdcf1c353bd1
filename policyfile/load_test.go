package policyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// all sets every field that a file can hold.
var all = holdfast.Policy{
	Safety:   call.ReadOnly,
	Fallback: fallback.Off(),
	Retry: &retry.Policy{
		MaxAttempts: 4, IdempotencyKey: true, EvenNested: true, RetryAfterCap: 2 * time.Minute,
		Backoff: retry.Backoff{Base: 10 * time.Millisecond, Factor: 1.5, Cap: 3 * time.Second, Jitter: retry.DecorrelatedJitter},
		Budget:  retry.Budget{Share: 0.25, PerSecond: 1, Cap: 20, Initial: 5, Shared: true},
		Hedge:   retry.Hedge{Delay: 20 * time.Millisecond, Percentile: 0.95, Extra: 2},
	},
	Breaker: &breaker.Config{
		Window: breaker.Window{Span: time.Minute, Buckets: 20}, MinCalls: 20, FailureRate: 0.4, Failures: 100, Consecutive: 50,
		SlowCall: time.Second, SlowRate: 0.9, Stall: breaker.Stall{After: 3 * time.Second, Calls: 5},
		Cooldown: 2 * time.Second, MaxCooldown: 20 * time.Second, CooldownFactor: 3, Jitter: 0.1,
		Probes: 3, ProbeSuccesses: 2, ProbeRate: 0.6, ProbeTimeout: 4 * time.Second, ProbeLatency: time.Second,
		RampUp: 10 * time.Second, RampFrom: 0.2, Scope: breaker.TwoLevel, CountThrottled: true, Shadow: true, Quorum: 2,
	},
	Timeout: &timeout.Limits{
		Total: 20 * time.Second, Attempt: 5 * time.Second, FirstMessage: 2 * time.Second, Idle: 15 * time.Second,
		IdleKnownLength: true, Floor: 10 * time.Millisecond,
	},
	Bulkhead: &bulkhead.Config{
		Limit: 50, Queue: 10, MaxWait: time.Second, Scope: bulkhead.TwoLevel, MethodLimit: 20,
		Adaptive: bulkhead.Adaptive{Min: 5, Start: 10, Increase: 2, Decrease: 0.7, Tolerance: 0.2},
	},
}

const allYAML = `# every field
wire: grpc
name: orders
default:
  safety: read_only
  fallback: off
  retry:
    max_attempts: 4
    backoff: {base: 10ms, factor: 1.5, cap: 3s, jitter: decorrelated}
    budget: {share: 0.25, per_second: 1, cap: 20, initial: 5, shared: true}
    hedge: {delay: 20ms, percentile: 0.95, extra: 2}
    idempotency_key: true
    even_nested: true
    retry_after_cap: 2m
  breaker:
    window: {span: 1m, buckets: 20}
    min_calls: 20
    failure_rate: 0.4
    failures: 100
    consecutive: 50
    slow_call: 1s
    slow_rate: 0.9
    stall: {after: 3s, calls: 5}
    cooldown: 2s
    max_cooldown: 20s
    cooldown_factor: 3
    jitter: 0.1
    probes: 3
    probe_successes: 2
    probe_rate: 0.6
    probe_timeout: 4s
    probe_latency: 1s
    ramp_up: 10s
    ramp_from: 0.2
    scope: two_level
    count_throttled: true
    shadow: true
    quorum: 2
  timeout: {total: 20s, attempt: 5s, first_message: 2s, idle: 15s, idle_known_length: true, floor: 10ms}
  bulkhead:
    limit: 50
    queue: 10
    max_wait: 1s
    scope: two_level
    method_limit: 20
    adaptive: {min: 5, start: 10, increase: 2, decrease: 0.7, tolerance: 0.2}
methods:
  pkg.S:
    retry: {max_attempts: unlimited, backoff: none}
    breaker: {jitter: none, window: {calls: 30}, local_only: true}
    timeout: {total: 0s}
    bulkhead: {limit: 1, queue: 0}
  /pkg.S/M: {retry: off, breaker: off, timeout: off, bulkhead: off}
  pkg.T: {retry: {budget: none}}
`

// C1: every field that is data is read, from YAML and from the same in JSON.
func TestC1_EveryFieldIsRead(t *testing.T) {
	want := holdfast.Config{Name: "orders", Default: all, Methods: map[string]holdfast.Policy{
		"pkg.S": {
			Retry:    &retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.NoWait()},
			Breaker:  &breaker.Config{Jitter: breaker.NoJitter, Window: breaker.Window{Calls: 30}, LocalOnly: true},
			Timeout:  &timeout.Limits{},
			Bulkhead: &bulkhead.Config{Limit: 1},
		},
		"/pkg.S/M": {Retry: retry.Off(), Breaker: breaker.Off(), Timeout: timeout.Off(), Bulkhead: bulkhead.Off()},
		"pkg.T":    {Retry: &retry.Policy{Budget: retry.NoBudget()}},
	}}
	f, err := Load(strings.NewReader(allYAML))
	require.NoError(t, err)
	require.Equal(t, &File{"grpc", want}, f)
	text, err := f.JSON()
	require.NoError(t, err)
	again, err := Load(strings.NewReader("\ufeff \n" + string(text)))
	require.NoError(t, err)
	require.Equal(t, f, again)
	for _, field := range policyShape().fields {
		mentioned(t, field.shape, field.name)
	}
	k, err := holdfast.New(f.Config)
	require.NoError(t, err)
	require.Equal(t, "orders", k.Name())
}

// mentioned fails for a field of which allYAML says nothing: one that is new.
func mentioned(t *testing.T, s *shape, path string) {
	name := path[strings.LastIndexByte(path, '.')+1:]
	require.Contains(t, allYAML, name+":", path)
	for _, f := range s.fields {
		mentioned(t, f.shape, path+"."+f.name)
	}
}

// faultsOf returns the faults of a text, one a line.
func faultsOf(t *testing.T, text string) string {
	t.Helper()
	_, err := Load(strings.NewReader(text))
	require.Error(t, err, "%s", text)
	faults, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	lines := make([]string, len(faults.Faults))
	for i, f := range faults.Faults {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// C1: all that is wrong, in form and in meaning, is told at once, with its place.
func TestC1_EveryFaultIsToldAtOnce(t *testing.T) {
	require.Equal(t, strings.TrimSpace(`
4:19: default.retry.max_attempts = 0: has no meaning of its own; leave it out for the default
5:5: default.retry: has no field "backof" (did you mean backoff?)
7:19: default.breaker.failure_rate = 50: must be a share, 0 < r <= 1 (did you mean 0.5?)
8:13: default.breaker.jitter = 0: has no meaning of its own; leave it out for the default; write none if that is meant
9:5: default.breaker: has no field "timeout"; there are `+breakerFields()+`
11:3: methods["get /x"]: the method "get" is never sent: write GET
12:3: methods["/slow"].breaker.window.span = 20s: from Default, must be at least twice Timeout.Attempt = 15s, from Methods["/slow"]
13:40: methods["GET /y"].bulkhead.scope = "per-target": must be per_target, per_method or two_level (did you mean per_target?)
13:62: methods["GET /y"].bulkhead.max_wait = 1s: has no effect without a Queue
14:3: methods: has the field "/slow" twice
15:1: has no field "method" (did you mean methods?)
`), faultsOf(t, `wire: http
default:
  retry:
    max_attempts: 0
    backof: {base: 10}
  breaker:
    failure_rate: 50
    jitter: 0
    timeout: off
methods:
  get /x: {}
  /slow: {timeout: {attempt: 15s}}
  GET /y: {bulkhead: {limit: 5, scope: per-target, max_wait: 1s}}
  /slow: {}
method: {}
`))
}

// breakerFields returns the names of a breaker's fields.
func breakerFields() string {
	var names []string
	for _, f := range policyShape().fields {
		if f.name == "breaker" {
			for _, f := range f.fields {
				names = append(names, f.name)
			}
		}
	}
	return listed(names)
}

// The hazards of YAML: each is decided, and said to whoever runs into it.
func TestC1_TheHazardsOfYAML(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"empty":                {"", "1:1: the file is empty; its first line is wire: grpc or wire: http"},
		"comments only":        {"# nothing\n", "1:1: the file is empty; its first line is wire: grpc or wire: http"},
		"nothing":              {"---\n", "2:1: has no value; it must be a group of fields: wire, name, default, methods, or be left out"},
		"no mapping":           {"- wire: grpc\n", "1:1: is a list; it must be a group of fields: wire, name, default, methods"},
		"no wire":              {"name: x\n", "1:1: has no field wire; the first line is wire: grpc or wire: http"},
		"another wire":         {"wire: https\n", `1:7: wire = "https": must be grpc or http`},
		"wire not first":       {"name: x\nwire: grpc\n", "2:7: wire: must come first: it says how the names are read"},
		"a boolean of 1.1":     {"wire: grpc\ndefault: {breaker: {shadow: yes}}\n", `2:29: default.breaker.shadow = "yes": is a text here, though other programs read it as a boolean; write true or false`},
		"off read as false":    {"wire: grpc\ndefault: {retry: false}\n", "2:18: default.retry = false: is a boolean; write off"},
		"octal":                {"wire: grpc\ndefault: {breaker: {probes: 010}}\n", "2:29: default.breaker.probes = 010: may be read as decimal, octal or hexadecimal; write it in decimal, without a leading 0"},
		"octal of 1.2":         {"wire: grpc\ndefault: {breaker: {probes: 0o10}}\n", "2:29: default.breaker.probes = 0o10: may be read as decimal, octal or hexadecimal; write it in decimal, without a leading 0"},
		"underscores":          {"wire: grpc\ndefault: {breaker: {probes: 1_0}}\n", "2:29: default.breaker.probes = 1_0: is no number as JSON writes them; write plain digits"},
		"infinity":             {"wire: grpc\ndefault: {breaker: {failure_rate: .inf}}\n", "2:35: default.breaker.failure_rate = .inf: is no number"},
		"base 60":              {"wire: grpc\ndefault: {timeout: {total: 1:30}}\n", `2:28: default.timeout.total = "1:30": is no duration; it is numbers with units (h, m, s, ms, us, ns), as in 1m30s or 1.5s`},
		"no unit":              {"wire: grpc\ndefault: {timeout: {total: 30}}\n", "2:28: default.timeout.total = 30: is a number without a unit; write 30s or 30ms"},
		"no unit, none meant":  {"wire: grpc\ndefault: {timeout: {total: 0}}\n", "2:28: default.timeout.total = 0: is a number without a unit; write 0s or 0ms"},
		"a number in quotes":   {"wire: grpc\ndefault: {breaker: {probes: \"3\"}}\n", `2:29: default.breaker.probes = "3": is a text; it must be an integer`},
		"a second document":    {"wire: grpc\n---\nwire: http\n", "2:1: a second document begins here; a file has one"},
		"a tab":                {"wire: grpc\ndefault:\n\tretry: off\n", "3:1: is no YAML: found character that cannot start any token"},
		"unclosed":             {"wire: grpc\ndefault: {retry: off\n", "1:1: is no YAML: did not find expected ',' or '}'"},
		"twice":                {"wire: grpc\nwire: http\n", `2:1: has the field "wire" twice`},
		"a merge key":          {"wire: grpc\ndefault: &d {retry: off}\nmethods:\n  pkg.S: {<<: *d}\n", `4:11: methods["pkg.S"]: << is not read: a layer that is set replaces the inherited one whole; use an alias for all of it`},
		"a tag":                {"wire: grpc\nname: !!str 5\n", "2:7: name: has the tag !!str; tags are not read"},
		"a key of its own":     {"wire: grpc\nmethods:\n  1: {}\n", `3:3: methods: has the field "1", which is a number; a name is a text, in quotes if it looks like something else`},
		"a name that is none":  {"wire: grpc\nname: on\ndefault:\n", "3:9: default: has no value; it must be a group of fields, or be left out"},
		"an alias of itself":   {"wire: grpc\ndefault: &d {retry: *d}\n", `2:14: default.retry: has no field "retry"; there are backoff, budget, even_nested, hedge, idempotency_key, max_attempts, retry_after_cap`},
		"an unknown alias":     {"wire: grpc\ndefault: *d\n", "1:1: is no YAML: unknown anchor 'd' referenced"},
		"UTF-16":               {"\xff\xfew\x00i\x00", "1:1: is no text in UTF-8"},
		"a byte that is none":  {"wire: grpc\n# é\xff\n", "2:4: is no text in UTF-8"},
		"a control character":  {"wire: grpc\nname: \x00\n", "1:1: is no YAML: control characters are not allowed"},
		"too long":             {"wire: grpc\ndefault: {timeout: {total: 9999999h}}\n", `2:28: default.timeout.total = "9999999h": is longer than a duration can be, 290 years`},
		"too short":            {"wire: grpc\ndefault: {timeout: {total: 0.1ns}}\n", `2:28: default.timeout.total = "0.1ns": is shorter than a nanosecond`},
		"too large":            {"wire: grpc\ndefault: {bulkhead: {limit: 1e300}}\n", "2:29: default.bulkhead.limit = 1e300: is out of range"},
		"too large a share":    {"wire: grpc\ndefault: {breaker: {failure_rate: 1e400}}\n", "2:35: default.breaker.failure_rate = 1e400: is out of range"},
		"a fallback in a file": {"wire: grpc\ndefault: {fallback: {}}\n", "2:21: default.fallback: is a group of fields; it must be off"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, faultsOf(t, tc.text)) })
	}

	for name, text := range map[string]string{
		"a byte order mark":  "\ufeffwire: grpc\n",
		"a head":             "# policies\n\n---\nwire: grpc\n...\n",
		"lines of Windows":   "wire: grpc\r\nname: x\r\n",
		"quotes":             "wire: \"grpc\"\ndefault: {retry: 'off'}\n",
		"aliases":            "wire: grpc\ndefault: {retry: &r {max_attempts: 2}}\nmethods: {pkg.S: {retry: *r}, pkg.T: {retry: *r}}\n",
		"a name in a block":  "wire: grpc\nname: |-\n  orders\n",
		"integers as floats": "wire: grpc\ndefault: {breaker: {probes: 3.0, min_calls: 1e1}}\n",
	} {
		_, err := Load(strings.NewReader(text))
		require.NoError(t, err, name)
	}
}

// C1: what JSON alone can have wrong.
func TestC1_TheHazardsOfJSON(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no end":          {`{"wire": "grpc"`, "1:16: is no JSON: the file ends early"},
		"a comma":         {"{\"wire\": \"grpc\",\n}", "2:1: is no JSON: invalid character '}' looking for beginning of object key string"},
		"a flow mapping":  {"{wire: grpc}", "1:2: is no JSON: invalid character 'w'"},
		"more":            {"{\"wire\": \"grpc\"}\n {}", "2:2: something follows the end of the file's one value"},
		"twice":           {"{\"wire\": \"grpc\",\n  \"wire\": \"grpc\"}", `2:3: has the field "wire" twice`},
		"null":            {`{"wire": "grpc", "default": null}`, "1:29: default: has no value; it must be a group of fields, or be left out"},
		"false":           {`{"wire": "grpc", "default": {"retry": false}}`, "1:39: default.retry = false: is a boolean; write off"},
		"deep":            {`{"wire": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "1:60: is no JSON: values are nested deeper than 50"},
		"a list":          {`{"wire": "grpc", "methods": [1]}`, "1:29: methods: is a list; it must be a group of policies by their methods' names"},
		"place in a line": {`{"wire": "grpc", "name": "é", "default": {"safety": "x"}}`, `1:53: default.safety = "x": must be unsafe, idempotent or read_only`},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, faultsOf(t, tc.text)) })
	}
	_, err := Load(strings.NewReader("{\n\t\"default\": {\"retry\": \"off\"},\n\t\"wire\": \"http\"\n}"))
	require.NoError(t, err, "in any order")
	_, err = Load(strings.NewReader("\ufeff{\"name\": \"x\", \"wire\": \"http\"}"))
	require.NoError(t, err, "and a byte order mark does not make it YAML")
}

// A file that grows when its aliases are followed is not followed (billion laughs),
// and one of aliases alone stays as long as it is.
func TestC1_AliasesAreBounded(t *testing.T) {
	laughs := "wire: grpc\nname: &a x\ndefault:\n"
	for c := 'b'; c < 'z'; c++ {
		laughs += fmt.Sprintf("  %c: &%c {", c, c)
		for i := range 9 {
			laughs += fmt.Sprintf("k%d: *%c, ", i, c-1)
		}
		laughs += "}\n"
	}
	laughs += "  retry: *y\n"
	began := time.Now()
	require.Contains(t, faultsOf(t, laughs), `default.retry: has no field "k8"`)
	require.Less(t, time.Since(began), time.Minute, "real time: it would never end else")

	_, err := Load(io.LimitReader(iotest.DataErrReader(&endless{}), maxSize+10))
	require.EqualError(t, err, "policyfile: 1:1: the file has more than 4194304 bytes")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

// What is read by name is told by name; a reader's own failure is no fault of a
// file's.
func TestTheNameIsInTheError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policies.yaml")
	require.NoError(t, os.WriteFile(name, []byte("wire: grpc\ndefault: 3\nmethods: 4\n"), 0o600))
	_, err := LoadFile(name)
	require.EqualError(t, err, "policyfile: bad policies\n\t"+name+":2:10: default = 3: is a number; it must be a group of fields\n\t"+
		name+":3:10: methods = 4: is a number; it must be a group of policies by their methods' names")
	var fault *Fault
	require.ErrorAs(t, err, &fault)
	require.Equal(t, 2, fault.Line)
	_, err = LoadFile(name + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load(iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// D091, C1: what the constructors refuse files are refused for too, at the place.
func TestD091_ContradictionsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"breaker: {window: {calls: 5}, min_calls: 6}":       "default.breaker.min_calls = 6: must not exceed Window.Calls = 5",
		"breaker: {failure_rate: 0}":                        "default.breaker.failure_rate = 0: has no meaning of its own",
		"breaker: {failure_rate: -1}":                       "default.breaker.failure_rate = -1: must be above 0",
		"breaker: {failure_rate: 1.5}":                      "default.breaker.failure_rate = 1.5: must be a share",
		"breaker: {failure_rate: .nan}":                     "default.breaker.failure_rate = .nan: is no number",
		"breaker: {failure_rate: 50}":                       "default.breaker.failure_rate = 50: must be a share, 0 < r <= 1 (did you mean 0.5?)",
		"breaker: {probes: 0}":                              "default.breaker.probes = 0: has no meaning of its own",
		"breaker: {probe_rate: 0.5, probe_successes: 3}":    "default.breaker.probe_successes = 3: with ProbeRate must not exceed Probes = 1",
		"breaker: {cooldown: -1s}":                          `default.breaker.cooldown = -1s: must be above 0`,
		"breaker: {window: {span: 30s, buckets: 0}}":        "default.breaker.window.buckets = 0: has no meaning of its own",
		"breaker: {window: {span: 0s}}":                     "default.breaker.window.span = 0s: has no meaning of its own",
		"breaker: {window: {calls: 0}}":                     "default.breaker.window.calls = 0: has no meaning of its own",
		"breaker: {jitter: 2}":                              "default.breaker.jitter = 2: must be a share between 0 and 1, or none",
		"retry: {max_attempts: -1}":                         "default.retry.max_attempts = -1: must be above 0",
		"retry: {max_attempts: unlimited, budget: none}":    "default.retry.max_attempts: unlimited needs a Budget",
		"retry: {backoff: {base: 10s, cap: 1s}}":            "default.retry.backoff.cap = 1s: must not be less than Base = 10s",
		"timeout: {total: 1s, attempt: 2s}":                 "default.timeout.attempt = 2s: must not exceed Total = 1s",
		"timeout: {attempt: 15s}":                           "2:10: default.breaker.window.span = 20s: from Standard, must be at least twice Timeout.Attempt = 15s, from Default",
		"bulkhead: {queue: 5}":                              "default.bulkhead.limit = 0: must be at least 1; bulkhead: off limits nothing",
		"bulkhead: {limit: 1, adaptive: {min: 2}}":          "default.bulkhead.adaptive.min = 2: must be in [1, Limit = 1]",
		"breaker: {stall: {calls: 3}}":                      "default.breaker.stall.calls = 3: needs Stall.After",
		"retry: {hedge: {percentile: 0.5, extra: 9}}":       "default.retry.hedge.extra = 9: needs MaxAttempts of at least 10",
		"retry: {max_attempts: 99999999999999999999999999}": "default.retry.max_attempts = 99999999999999999999999999: is out of range",
	} {
		got := faultsOf(t, "wire: grpc\ndefault: {"+text+"}\n")
		require.NotContains(t, got, "\n", text)
		require.Contains(t, got, want, text)
	}
	_, err := Load(strings.NewReader("wire: http\n"))
	require.NoError(t, err, "defaults alone are valid")
}

// C1: a file of the largest size is read in the time that its size takes, and not
// in hours.
func TestC1_TheTimeToReadAFileIsThatOfItsSize(t *testing.T) {
	text := `{"wire": "http",` + "\n" + `"default": {"bulkhead": [` + strings.Repeat("1,", maxSize/4) + `1]}, "ü": 1}`
	_, err := Load(strings.NewReader(text))
	require.ErrorContains(t, err, "2:25: default.bulkhead")
	require.ErrorContains(t, err, fmt.Sprintf("2:%d: ", len(text)-len(`{"wire": "http",`)-len(`"ü": 1}`)))
}
