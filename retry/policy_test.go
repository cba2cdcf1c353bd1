package retry

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBudgetFaultsAreNamed(t *testing.T) {
	for want, b := range map[string]Budget{
		"retry: Share = 1.5: must be in (0, 1], or 0 for the default":            {Share: 1.5},
		"retry: Share = NaN: must be in (0, 1], or 0 for the default":            {Share: math.NaN()},
		"retry: PerSecond = -1: must be in [1e-6, 1e6], or 0 for the default":    {PerSecond: -1},
		"retry: PerSecond = 1e+07: must be in [1e-6, 1e6], or 0 for the default": {PerSecond: 1e7},
		"retry: Cap = 0.5: must be at least 1, or 0 for the default":             {Cap: 0.5},
		"retry: Cap = +Inf: must be at least 1, or 0 for the default":            {Cap: math.Inf(1)},
		"retry: Cap = 2e+06: must not exceed 1e+08 x PerSecond = 1e+06":          {Cap: 2e6, PerSecond: 0.01},
		"retry: Initial = 101: must be in (0, Cap = 100], or 0 for the default":  {Initial: 101},
	} {
		require.EqualError(t, b.check().Err("retry"), want)
	}
	require.NoError(t, Budget{}.check().Err("retry"))
	require.NoError(t, NoBudget().check().Err("retry"))

	err := Policy{MaxAttempts: Unlimited, Budget: NoBudget(), RetryAfterCap: -1, Backoff: Backoff{Base: -1}}.Check()
	require.EqualError(t, err, "retry: bad configuration\n"+
		"\tMaxAttempts: retry.Unlimited needs a Budget\n"+
		"\tBackoff.Base = -1ns: must be positive, or 0 for the default; retry.NoWait() repeats at once\n"+
		"\tRetryAfterCap = -1ns: must be positive, or 0 for the default")
	require.NoError(t, Policy{MaxAttempts: Unlimited}.Check())
	require.Equal(t, Policy{
		MaxAttempts: 3, RetryAfterCap: time.Minute,
		Backoff: Backoff{Base: 50 * time.Millisecond, Factor: 2, Cap: 5 * time.Second},
		Budget:  Budget{Share: 0.2, PerSecond: 10, Cap: 100, Initial: 10},
	}, Policy{}.WithDefaults())
}
