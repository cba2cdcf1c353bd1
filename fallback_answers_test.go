package holdfast_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
)

// F1, F2: the whole product of safeties and classes.
func TestF1_OnlyAReadThatFailedIsAnswered(t *testing.T) {
	answered := map[call.Class]bool{
		call.Refused: true, call.Throttled: true, call.ServerFault: true, call.Unavailable: true, call.TimedOut: true,
	}
	down := errors.New("down")
	for class := call.OK; class <= call.Permanent; class++ {
		k, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
			Fallback: &fallback.Policy{Answer: fallback.Static("instead")},
			Retry:    retry.Off(),
			Classify: func(_ context.Context, _ call.Info, res call.Result) call.Result {
				res.Class = class
				return res
			},
		}})
		require.NoError(t, err)
		for safety := call.SafetyUnknown; safety.Valid(); safety++ {
			got, err := holdfast.Do(t.Context(), k, call.Info{Target: "db", Method: "m", Safety: safety},
				func(context.Context) (string, error) { return "", down })
			if safety == call.ReadOnly && answered[class] {
				require.NoError(t, err, "%v %v", safety, class)
				require.Equal(t, "instead", got, "%v %v", safety, class)
			} else {
				require.ErrorIs(t, err, down, "%v %v", safety, class)
				require.Empty(t, got)
			}
		}
	}
}

// What the caller changes of a policy after New, or of one that is explained to him,
// reaches no kit.
func TestPoliciesAreCopied(t *testing.T) {
	stale := &fallback.Stale{Store: struct{ fallback.Store }{}, Identity: fallback.SharedByAll}
	k, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{Fallback: &fallback.Policy{Stale: stale}}})
	require.NoError(t, err)
	stale.MaxBody = 2
	e, err := k.Explain("any")
	require.NoError(t, err)
	require.Zero(t, e.Policy.Fallback.Stale.MaxBody)
	e.Policy.Fallback.Stale.MaxBody = 3
	e.Policy.Retry.MaxAttempts = 1000
	e, err = k.Explain("any")
	require.NoError(t, err)
	require.Zero(t, e.Policy.Fallback.Stale.MaxBody)
	require.Equal(t, holdfast.Standard().Retry, e.Policy.Retry)
}
