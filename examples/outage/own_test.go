package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// A bad scenario is refused with the name and the value of every bad field.
func TestBadScenarios(t *testing.T) {
	const fault = "\nfault: {kind: silent, from: 1s, to: 2s}"
	for text, want := range map[string][]string{
		"":                                         {"file: is empty"},
		"a: [":                                     {"file: "},
		"just text":                                {"just text", "must be a mapping"},
		"method: m":                                {"fault: is missing"},
		"rate: 5" + fault:                          {"method: is missing"},
		"method: ''" + fault:                       {"method = : must not be empty (line 1)"},
		"method: m\nrate: -1" + fault:              {"rate = -1: must be a number above 0, at most 10000 (line 2)"},
		"method: m\nrate: NaN" + fault:             {"rate = NaN: must be a number"},
		"method: m\nrate: many" + fault:            {"rate = many: must be a number"},
		"method: m\nrate: [1]" + fault:             {"rate: must be one value (line 2)"},
		"method: m\nthreads: 1.5" + fault:          {"threads = 1.5: must be a whole number from 1"},
		"method: m\nlatency: 50" + fault:           {"latency = 50: must be a duration such as 250ms"},
		"method: m\nlatency: 0s" + fault:           {"latency = 0s: must be positive"},
		"method: m\nlatency: 90h" + fault:          {"latency = 90h: must be an hour at most"},
		"method: m\nlasts: 1s" + fault:             {"lasts = 1s: must not end before the fault, whose to is 2s"},
		"method: m\nlasts: 1h\nrate: 9999" + fault: {"lasts = 1h0m0s: with 10049 requests a second"},
		"method: m\nsafety: sure" + fault:          {"safety = sure: must be one of unsafe, idempotent, read_only"},
		"method: m\nsped: 3" + fault:               {"sped (line 2) = 3: is no field of a scenario"},
		"method: m\nrate: 1\nrate: 2" + fault:      {"rate = 2: stands there twice, again (line 3)"},

		"method: m\nfault: {from: 1s}":                                   {"fault.kind: is missing: one of silent, slow"},
		"method: m\nfault: {kind: loud}":                                 {"fault.kind = loud: must be one of silent, slow, errors"},
		"method: m\nfault: {kind: silent, from: 5s, to: 5s}":             {"fault.to = 5s: must be after from = 5s"},
		"method: m\nfault: {kind: silent, share: 0.5}":                   {"fault.share (line 2) = 0.5: is no field of a fault of the kind silent"},
		"method: m\nfault: {kind: slow}":                                 {"fault.latency: is missing"},
		"method: m\nfault: {kind: errors}":                               {"fault.share: is missing"},
		"method: m\nfault: {kind: errors, share: 1.5}":                   {"fault.share = 1.5: must be a number above 0, at most 1"},
		"method: m\nfault: {kind: flapping, period: -1s}":                {"fault.period = -1s: must be positive"},
		"method: m\nfault: {kind: partial}":                              {"fault.share: is missing"},
		"method: m\nfault: {kind: recovery}":                             {"fault.capacity: is missing", "fault.for: is missing"},
		"method: m\nfault: silent":                                       {"fault (line 2) = silent: must be a mapping"},
		"method: m\nrate: x\nthreads: 0\nfault: {kind: slow, from: now}": {"rate = x", "threads = 0", "fault.from = now", "fault.latency: is missing"},
	} {
		_, faults := parseScenario([]byte(text))
		err := faults.Err("s.yaml")
		require.Error(t, err, text)
		for _, w := range want {
			require.ErrorContains(t, err, w, text)
		}
		require.True(t, strings.HasPrefix(err.Error(), "s.yaml: "), err.Error())
	}
	_, err := loadScenario("no such file")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzScenario(f *testing.F) {
	files, _ := filepath.Glob("scenarios/*.yaml")
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, text := range []string{
		"", "a: &a [*a]", "fault: 7", "method: GET /\nrate: 1\nfault: {kind: none}", "rate: 1e999\nthreads: -1\nlasts: 1h1h",
		"method: GET /\nrate: 5\nthreads: 3\nlasts: 20s\nfault: {kind: slow, from: 9s, to: 3s, latency: 1s}", "method: [x]\nmethod: y",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, faults := parseScenario(text)
		if err := faults.Err("s.yaml"); err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "s.yaml: "), err.Error())
			return
		}
		require.NotEmpty(t, s.Method)
		require.Contains(t, kinds, s.Fault.Kind)
		require.Positive(t, min(s.Rate, s.OtherRate))
		require.Positive(t, s.Threads)
		require.Positive(t, min(s.Latency, s.OtherTakes))
		require.GreaterOrEqual(t, s.Fault.From, time.Duration(0))
		require.Greater(t, s.Fault.To, s.Fault.From)
		require.GreaterOrEqual(t, s.Lasts, s.Fault.To)
		require.LessOrEqual(t, s.Lasts.Seconds()*(s.Rate+s.OtherRate), 200000.0)
		require.NotNil(t, s.dependency(func() float64 { return 0 }))
	})
}

// Every sample scenario plays, gives a table, charts and something to learn, and
// the same each time.
func TestTheSampleScenarios(t *testing.T) {
	files, err := filepath.Glob("scenarios/*.yaml")
	require.NoError(t, err)
	kindsSeen := map[string]bool{}
	for _, name := range files {
		if filepath.Base(name) == "policy.yaml" {
			continue
		}
		dir := t.TempDir()
		text := string(output(t, "-seeds=3", "-scenario", name, "-svg", dir))
		require.Equal(t, text, string(output(t, "-seeds=3", "-scenario", name)))
		require.Contains(t, text, "its time limit alone")
		require.Regexp(t, `(?s)- .* threads.*- .*breaker.*- In 3 runs`, text, name)
		drawn, err := filepath.Glob(filepath.Join(dir, "scenario-*.svg"))
		require.NoError(t, err)
		require.Len(t, drawn, 2)
		s, err := loadScenario(name)
		require.NoError(t, err)
		kindsSeen[s.Fault.Kind] = true
	}
	for _, kind := range kinds {
		require.True(t, kindsSeen[kind], "no sample of %s", kind)
	}
}

// What arithmetic alone can say of a policy.
func TestTheFindings(t *testing.T) {
	silence := scenario{
		Method: "m", Rate: 50, Threads: 40, Latency: latency, Lasts: lasts, Fault: fault{Kind: silent, From: from, To: to},
	}
	with := func(change func(*scenario)) scenario {
		s := silence
		change(&s)
		return s
	}
	two := &timeout.Limits{Attempt: 2 * time.Second}
	off := func(p holdfast.Policy) holdfast.Policy {
		p.Safety = call.ReadOnly
		if p.Retry == nil {
			p.Retry = retry.Off()
		}
		if p.Bulkhead == nil {
			p.Bulkhead = bulkhead.Off()
		}
		if p.Timeout == nil {
			p.Timeout = two
		}
		if p.Breaker == nil {
			p.Breaker = breaker.Off()
		}
		return p
	}
	narrow := breaker.Config{Window: breaker.Window{Span: 10 * time.Second}, MinCalls: 20}
	stall := breaker.Config{Stall: breaker.Stall{After: 200 * time.Millisecond, Calls: 10}}
	for _, tc := range []struct {
		name string
		s    scenario
		p    holdfast.Policy
		want []string
	}{
		{
			"too rare for the rate",
			with(func(s *scenario) { s.Rate = 0.9 }),
			holdfast.Policy{Breaker: &narrow},
			[]string{
				"The breaker is not expected to open: 20 calls in 10 s are needed, this method makes 9.",
				"A silence takes 1.8 threads: 0.9 calls a second x 2 s (Timeout.Attempt). The caller has 40.",
			},
		},
		{
			"no breaker and all threads", silence, holdfast.Policy{},
			[]string{
				"There is no breaker.",
				"A silence takes 100 threads: 50 calls a second x 2 s (Timeout.Attempt). The caller has 40: all are taken 800 ms after it begins",
			},
		},
		{
			"no limit", silence, holdfast.Policy{Timeout: timeout.Off(), Breaker: &narrow},
			[]string{
				"Nothing in the policy bounds the wait for an answer: a silence takes thread after thread for as long as it lasts, and all 40 within 800 ms.",
				"The breaker is not expected to open: nothing ends an attempt that gets no answer.",
			},
		},
		{
			"retries hold the thread", silence,
			holdfast.Policy{Retry: &retry.Policy{}, Timeout: &timeout.Limits{Total: 5 * time.Second, Attempt: 2 * time.Second}},
			[]string{"A silence takes 250 threads: 50 calls a second x 5 s (up to 3 attempts of Timeout.Attempt = 2 s)."},
		},
		{
			"the article's breaker", silence, holdfast.Policy{Breaker: articleBreaker(patient)},
			[]string{"The breaker can know it after about 2.2 s, by FailureRate; until then the calls go out."},
		},
		{
			"stall", silence, holdfast.Policy{Breaker: &stall},
			[]string{"The breaker can know it after about 400 ms, by Stall"},
		},
		{
			"a bulkhead too narrow for the stall rule", silence,
			holdfast.Policy{Breaker: &stall, Bulkhead: &bulkhead.Config{Limit: 8}},
			[]string{
				"The breaker is not expected to open: 10 attempts without an answer are needed, and no more than 8 run at once.",
				"The bulkhead lets at most 8 wait, of the caller's 40.",
			},
		},
		{
			"a bulkhead too wide", silence, holdfast.Policy{Bulkhead: &bulkhead.Config{Limit: 1000}},
			[]string{"The bulkhead's limit of 1000 is not below that, and does not help."},
		},
		{
			"slow, and no rule for it",
			with(func(s *scenario) { s.Fault.Kind, s.Fault.Latency = slow, time.Second }),
			holdfast.Policy{Breaker: &narrow},
			[]string{"Slowness takes 50 threads: 50 calls a second x 1 s.", "The breaker is not expected to open: no attempt fails in this fault."},
		},
		{
			"slow, and a rule for it",
			with(func(s *scenario) { s.Fault.Kind, s.Fault.Latency = slow, time.Second }),
			holdfast.Policy{Breaker: &breaker.Config{Window: breaker.Window{Calls: 20}, SlowCall: 500 * time.Millisecond}},
			[]string{"The breaker can know it after about 1.2 s, by SlowRate"},
		},
		{
			"too few errors",
			with(func(s *scenario) { s.Fault.Kind, s.Fault.Share = failing, 0.3; s.Fault.Latency = time.Millisecond }),
			holdfast.Policy{Breaker: &breaker.Config{}},
			[]string{"The breaker is not expected to open: 30 % of the attempts fail, and the rule asks for 50 %."},
		},
		{
			"too few errors, but a small window",
			with(func(s *scenario) { s.Fault.Kind, s.Fault.Share = failing, 0.3; s.Fault.Latency = time.Millisecond }),
			holdfast.Policy{Breaker: articleBreaker(patient)},
			[]string{"and the rule asks for 50 %; but the window is so small that chance may do it."},
		},
		{
			"a silence shorter than the window needs",
			with(func(s *scenario) { s.Fault.To = from + 4*time.Second }),
			holdfast.Policy{Breaker: &breaker.Config{}},
			[]string{"The breaker is not expected to open: within the 4 s of it the window of 20 s does not hold enough of it."},
		},
		{
			"in a row",
			silence, holdfast.Policy{Breaker: &breaker.Config{Consecutive: 5, Failures: 10}},
			[]string{"can know it after about 2.1 s, by Consecutive", "By Failures it could know after about 2.2 s."},
		},
		{
			"in a row, with answers between",
			with(func(s *scenario) { s.Fault.Kind, s.Fault.Share = partial, 0.25 }),
			holdfast.Policy{Breaker: &breaker.Config{Consecutive: 5}},
			[]string{"The breaker is not expected to open: answers come in between: 5 in a row are chance."},
		},
	} {
		none := result{measured: measured{downstream: &span{}, threads: &span{}, transitions: &span{}}}
		text := strings.Join(findings(off(tc.p), "", tc.s, &none, &none), "\n")
		for _, want := range tc.want {
			require.Contains(t, text, want, tc.name)
		}
	}
}

// What arithmetic says is what the runs give, near enough.
func TestTheForesightIsNearTheSimulation(t *testing.T) {
	kit := inherit(holdfast.Policy{Timeout: &timeout.Limits{Total: 30 * time.Second, Attempt: 2 * time.Second}})
	kit.Safety = call.ReadOnly
	article := kit
	article.Breaker = articleBreaker(patient)
	stall := inherit(Policy())
	stall.Safety = call.ReadOnly
	for name, p := range map[string]holdfast.Policy{"kit": kit, "article": article, "stall": stall} {
		for _, s := range []scenario{
			{Method: "m", Rate: 50, Threads: 40, Latency: latency, Lasts: lasts, Fault: fault{Kind: silent, From: from, To: to}},
			{Method: "m", Rate: 5, Threads: 40, Latency: latency, Lasts: lasts, Fault: fault{Kind: silent, From: from, To: to}},
			{Method: "m", Rate: 50, Threads: 40, Latency: latency, Lasts: lasts, Fault: fault{Kind: failing, Share: 0.8, Latency: latency, From: from, To: to}},
		} {
			f := foresee(p, s)
			first := never
			for _, w := range f.ways() {
				first = min(first, w.after)
			}
			results, err := runAll(t.Context(), []row{{name: name, setup: s.setup(), client: clientOf(p)}}, 20, func(int, int) {})
			require.NoError(t, err)
			require.NotNil(t, results[0].firstOpen, "%s %+v", name, s.Fault)
			got := results[0].firstOpen.Median - from.Seconds()
			require.InDelta(t, got, first.Seconds(), max(0.25*got, 0.25), "%s, %g a second: %v", name, s.Rate, s.Fault)
		}
	}
}
