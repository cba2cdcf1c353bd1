package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The workers of the test are the test's own program.
func TestMain(m *testing.M) {
	if os.Getenv(orders) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheFleetActsAsOne(t *testing.T) {
	if testing.Short() {
		t.Skip("nine seconds of real processes")
	}
	var out, faults bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-short", "-json"}, &out, &faults))
	require.Empty(t, faults.String())
	var f figures
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&f))
	require.Equal(t, 5, f.Workers)
	require.Equal(t, 1, f.MaxConcurrentProbes)
	require.Positive(t, f.ProbesShared)
	require.Less(t, 2*f.ProbesShared, f.ProbesAlone)
}

// The table has the totals that the figures have.
func TestTheReportHasTotals(t *testing.T) {
	alone, shared := result{sight: sight{requests: 90, probes: 85}}, result{sight: sight{requests: 20, probes: 11}}
	var out bytes.Buffer
	report(&out, full, alone, shared)
	require.Regexp(t, `(?m)^ +probes +85 +11 *$`, out.String())
	require.Regexp(t, `(?m)^ +probes a second +9\.4 +1\.2 *$`, out.String())
}

func TestAStoreThatIsNotThere(t *testing.T) {
	var out, faults bytes.Buffer
	require.ErrorContains(t, run(t.Context(), []string{"-redis", "127.0.0.1:1"}, &out, &faults), "-redis: ")
}
