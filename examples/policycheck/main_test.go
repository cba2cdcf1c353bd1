package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// run for real: what it prints, where, and its exit status.
func TestPolicycheck(t *testing.T) {
	program := filepath.Join(t.TempDir(), "policycheck")
	built, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", built)
	check := func(args ...string) (status int, out, errs string) {
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(program, args...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), stdout.String(), stderr.String()
		}
		require.NoError(t, err)
		return 0, stdout.String(), stderr.String()
	}

	status, out, errs := check("good.yaml")
	require.Zero(t, status, errs)
	require.Empty(t, errs)
	want, err := os.ReadFile("testdata/good.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out)

	status, out, errs = check("bad.yaml")
	require.Equal(t, 1, status)
	require.Empty(t, out)
	want, err = os.ReadFile("testdata/bad.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), errs)

	status, out, errs = check("-short")
	require.Zero(t, status)
	require.Empty(t, errs)
	require.Contains(t, out, `its own sample: policies of the kit "catalogue" for http`)
	require.Contains(t, out, "POST /orders        one attempt: Retry is off in Methods[\"POST /orders\"]\n")

	// One bad file of several fails the whole, and the good ones are shown all the same.
	status, out, errs = check("-short", "bad.yaml", "missing.yaml", "good.yaml")
	require.Equal(t, 1, status)
	require.Contains(t, out, "good.yaml: ")
	require.Contains(t, errs, "open missing.yaml: ")

	status, _, errs = check("-what")
	require.Equal(t, 2, status)
	require.Contains(t, errs, "-what")

	grpc := filepath.Join(t.TempDir(), "grpc.json")
	require.NoError(t, os.WriteFile(grpc, []byte(`{"wire": "grpc", "methods": {"pkg.S/Get": {"safety": "read_only"}}}`), 0o600))
	status, out, _ = check("-short", grpc)
	require.Zero(t, status)
	require.Contains(t, out, "/pkg.S/Get          may be repeated\n")
}
