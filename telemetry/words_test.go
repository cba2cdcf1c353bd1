package telemetry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
)

// One of a thing is not written as several.
func TestOneIsNotSeveral(t *testing.T) {
	for want, c := range map[string]breaker.Config{
		"opens at 1 failure in a row; open 5 s to 30 s; closes after 1 good probe":           {Consecutive: 1, ProbeSuccesses: 1},
		"opens at 2 failures in a row; open 5 s to 30 s; closes after 3 good probes":         {Consecutive: 2},
		"opens at 1 failure of 1 result; open 5 s to 30 s; closes at 100 % of 1 probe":       {Failures: 1, Window: breaker.Window{Calls: 1}, Probes: 1, ProbeRate: 1},
		"opens at 4 failures in 20 s; open 5 s to 30 s; closes at 50 % of 1\u2009000 probes": {Failures: 4, Window: breaker.Window{Span: 20 * time.Second}, Probes: 1000, ProbeRate: 0.5},
	} {
		require.Equal(t, want, breakerText(&c))
	}
	require.Contains(t, retryText(&retry.Policy{MaxAttempts: 1}), "1 attempt,")
	require.Contains(t, retryText(&retry.Policy{MaxAttempts: 2}), "2 attempts,")
}

func TestTheTextOfAFallback(t *testing.T) {
	answer := fallback.Static(1)
	for want, p := range map[string]fallback.Policy{
		"a read that failed gets an earlier answer, up to 10 min old":                   {Stale: &fallback.Stale{MaxStale: 10 * time.Minute}},
		"a read that failed gets a computed one":                                        {Answer: answer},
		"a read that failed gets an earlier answer, up to 1 min old, or a computed one": {Stale: &fallback.Stale{MaxStale: time.Minute}, Answer: answer},
	} {
		require.Equal(t, want, fallbackText(&p))
	}
}
