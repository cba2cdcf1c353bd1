package outlier_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/outlier"
)

// C1: a zero field is its documented default, and what is written stays.
func TestC1_DefaultsAreFilled(t *testing.T) {
	require.Equal(t, outlier.Config{
		Window: 20, MinCalls: 5, FailureRate: 0.5, Time: 10 * time.Second, MaxTime: 5 * time.Minute,
	}, outlier.Config{}.WithDefaults())
	require.Equal(t, 50, outlier.Config{MinCalls: 50}.WithDefaults().Window)
	require.Equal(t, 3, outlier.Config{Window: 3}.WithDefaults().MinCalls)
	require.Equal(t, time.Duration(math.MaxInt64), outlier.Config{Time: math.MaxInt64}.WithDefaults().MaxTime)
	full := outlier.Config{Window: 7, MinCalls: 6, FailureRate: 0.1, Time: 1, MaxTime: 2, TrialTimeout: 3, MaxEjected: 4}
	require.Equal(t, full, full.WithDefaults())
	require.NoError(t, full.Check())
}

func TestFaultsAreNamed(t *testing.T) {
	for want, c := range map[string]outlier.Config{
		"outlier: Window = -1: must be between 1 and 32768, or 0 for the default":     {Window: -1},
		"outlier: MinCalls = 9: must not exceed Window = 5":                           {Window: 5, MinCalls: 9},
		"outlier: FailureRate = 2: must be between 1e-09 and 1, or 0 for the default": {FailureRate: 2},
		"outlier: Time = -1s: must be positive, or 0 for the default":                 {Time: -time.Second},
		"outlier: MaxTime = 1s: must be at least Time = 10s, or 0 for the default":    {MaxTime: time.Second},
		"outlier: TrialTimeout = -1s: must be positive, or 0 for the default":         {TrialTimeout: -time.Second},
		"outlier: MaxEjected = -1: must not be negative; 0 is all but one":            {MaxEjected: -1},
	} {
		require.EqualError(t, c.Check(), want)
	}
}
