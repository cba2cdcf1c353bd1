package retry

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHedgeFaultsAreNamed(t *testing.T) {
	for want, p := range map[string]Policy{
		"retry: Hedge.Delay = -1ns: must not be negative":                                            {Hedge: Hedge{Delay: -1}},
		"retry: Hedge.Percentile = 95: must be in (0, 1), or 0 for none":                             {Hedge: Hedge{Percentile: 95}},
		"retry: Hedge.Percentile = 1: must be in (0, 1), or 0 for none":                              {Hedge: Hedge{Percentile: 1}},
		"retry: Hedge.Percentile = NaN: must be in (0, 1), or 0 for none":                            {Hedge: Hedge{Percentile: math.NaN()}},
		"retry: Hedge.Extra = -1: must be at least 1, or 0 for the default":                          {Hedge: Hedge{Delay: 1, Extra: -1}},
		"retry: Hedge.Extra = 2: has no effect without Delay or Percentile":                          {Hedge: Hedge{Extra: 2}},
		"retry: Hedge.Extra = 3: needs MaxAttempts of at least 4, which is 3: they count hedges too": {Hedge: Hedge{Delay: 1, Extra: 3}},
		"retry: Hedge.Extra = 1: needs MaxAttempts of at least 2, which is 1: they count hedges too": {MaxAttempts: 1, Hedge: Hedge{Delay: 1}},
	} {
		require.EqualError(t, p.Check(), want)
	}
	require.NoError(t, Policy{Hedge: Hedge{Delay: time.Second}}.Check())
	require.NoError(t, Policy{Hedge: Hedge{Percentile: 0.95}}.Check())
	require.NoError(t, Policy{MaxAttempts: Unlimited, Hedge: Hedge{Percentile: 0.95, Extra: 7}}.Check())
}

func TestHedgeDefaults(t *testing.T) {
	require.False(t, Hedge{}.Sends())
	require.Equal(t, Hedge{}, Hedge{}.WithDefaults())
	require.Equal(t, Hedge{Delay: time.Second, Extra: 1}, Hedge{Delay: time.Second}.WithDefaults())
	require.Equal(t, Hedge{Delay: 10 * time.Millisecond, Percentile: 0.9, Extra: 1}, Hedge{Percentile: 0.9}.WithDefaults())
	require.Equal(t, 1, Policy{Hedge: Hedge{Delay: 1}}.WithDefaults().Hedge.Extra)
}
