package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A policy file is played, its method found by the rules of its wire, and its faults
// are told with their place.
func TestAPolicyFile(t *testing.T) {
	text := string(output(t, "-seeds=3", "-policy", "scenarios/policy.yaml", "-scenario", "scenarios/rare.yaml"))
	require.Contains(t, text, `GET /reports/{id}, by the policy of Methods["GET /reports/{id}"]`)
	require.Contains(t, text, "- The breaker is not expected to open: 20 calls in 10 s are needed, this method makes 9.")
	require.Contains(t, text, "- A call gets one attempt: Retry is off in Methods")
	require.Contains(t, text, "- The breaker opened in none of the runs.")

	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	scenario := write("scenario.yaml", "method: /shop.v1.Shop/GetItem\nsafety: read_only\nlasts: 20s\nfault: {kind: silent, from: 5s, to: 15s}\n")
	grpc := write("grpc.yaml", "wire: grpc\nmethods:\n  shop.v1.Shop:\n    timeout: {total: 2s, attempt: 1s}\n")
	text = string(output(t, "-seeds=2", "-policy", grpc, "-scenario", scenario))
	require.Contains(t, text, `by the policy of Methods["shop.v1.Shop"]`)

	bad := write("bad.yaml", "wire: http\ndefault:\n  breaker: {failure_rate: 50}\n")
	err := run(t.Context(), []string{"-policy", bad, "-scenario", scenario}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "bad.yaml")
	require.ErrorContains(t, err, "failure_rate")
	require.ErrorContains(t, err, "50")

	http := write("http.yaml", "wire: http\ndefault: {}\n")
	nameless := write("nameless.yaml", "method: no name\nfault: {kind: silent}\n")
	err = run(t.Context(), []string{"-policy", http, "-scenario", nameless}, io.Discard, io.Discard)
	require.ErrorContains(t, err, `"no name" is no name for`)

	require.Error(t, run(t.Context(), []string{"-policy", grpc}, io.Discard, io.Discard), "without a scenario")
	require.ErrorIs(t, run(t.Context(), []string{"-policy", filepath.Join(dir, "none"), "-scenario", scenario}, io.Discard, io.Discard), os.ErrNotExist)
}

// A file without the scenario's method is no policy for it, and that is said; the sample
// fits the samples that it names.
func TestWhichPolicyIsPlayed(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	none := file("none.yaml", "wire: http\nmethods: {GET /other: {retry: off}}\n")
	own := file("default.yaml", "wire: http\ndefault: {retry: off}\n")
	for _, tc := range []struct{ policy, scenario, want string }{
		{"", "silent", "GET /items/{id}, by the policy of policies.go, called"},
		{none, "silent", "GET /items/{id}, by the standard policy (no entry for it in " + none + "), called"},
		{own, "silent", "GET /items/{id}, by the default policy (no entry for it in " + own + "), called"},
		{"scenarios/policy.yaml", "silent", `GET /items/{id}, by the policy of Methods["GET /items/{id}"], called`},
		{"scenarios/policy.yaml", "rare", `GET /reports/{id}, by the policy of Methods["GET /reports/{id}"], called`},
	} {
		args := []string{"-seeds=1", "-scenario", "scenarios/" + tc.scenario + ".yaml"}
		if tc.policy != "" {
			args = append(args, "-policy", tc.policy)
		}
		require.True(t, strings.HasPrefix(string(output(t, args...)), tc.want), tc.want)
	}
}
