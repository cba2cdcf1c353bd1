package telemetry_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/telemetry"
)

// kitCalls makes n calls and returns for how many methods the kit counts.
func kitCalls(t *testing.T, k *holdfast.Kit, n int) (counted int) {
	t.Helper()
	for range n {
		_, err := holdfast.Do(t.Context(), k, once, func(context.Context) (int, error) { return 1, nil })
		require.NoError(t, err)
	}
	for range k.Tallies() {
		counted++
	}
	return counted
}

func TestNothingIsCountedForAProviderThatDropsAll(t *testing.T) {
	k := plain(t)
	_, err := telemetry.Metrics{Provider: noop.NewMeterProvider()}.Register(k)
	require.NoError(t, err)
	require.Zero(t, kitCalls(t, k, 3))
	meter(t, telemetry.Metrics{}, k)
	require.Equal(t, 1, kitCalls(t, k, 3))
}

// A program may set the global provider after it has registered its kits. That is
// once for a process, so the test is one of its own.
func TestCallsAreCountedOnceTheGlobalProviderIsSet(t *testing.T) {
	const inside = "HOLDFAST_TEST_GLOBAL_PROVIDER"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), inside+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "PASS")
		return
	}
	byDefault, byName := plain(t), plain(t)
	for k, m := range map[*holdfast.Kit]telemetry.Metrics{byDefault: {}, byName: {Provider: otel.GetMeterProvider()}} {
		_, err := m.Register(k)
		require.NoError(t, err)
		require.Zero(t, kitCalls(t, k, 3))
	}
	reader := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	for _, k := range []*holdfast.Kit{byDefault, byName} {
		// Real time, because the provider is the process's: a call asks once a second.
		require.Eventually(t, func() bool { return kitCalls(t, k, 1) == 1 }, 10*time.Second, 10*time.Millisecond)
	}
	late := plain(t)
	_, err := telemetry.Metrics{}.Register(late)
	require.NoError(t, err)
	require.Equal(t, 1, kitCalls(t, late, 1))
	require.NotZero(t, collect(t, reader)["holdfast.calls{kit=shop,method=insert,result=ok}"])
}
