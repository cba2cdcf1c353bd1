package fallback_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
)

// F1, F2: the whole product of safeties and classes.
func TestF1_OnlyAReadThatFailedIsAnswered(t *testing.T) {
	answered := map[call.Class]bool{
		call.Refused: true, call.Throttled: true, call.ServerFault: true, call.Unavailable: true, call.TimedOut: true,
	}
	for safety := call.SafetyUnknown; safety.Valid(); safety++ {
		for class := call.Class(0); class <= call.Permanent; class++ {
			want := safety == call.ReadOnly && answered[class]
			require.Equal(t, want, fallback.Applies(safety, class), "%v %v", safety, class)
		}
	}
}

// F5: both errors are reachable, the primary first.
func TestF5_BothErrorsAreReachable(t *testing.T) {
	primary, second := errors.New("down"), errors.New("no copy")
	err := error(&fallback.Error{Primary: primary, Fallback: second})
	require.ErrorIs(t, err, primary)
	require.ErrorIs(t, err, second)
	require.EqualError(t, err, "fallback: no copy; answering for: down")

	err = &fallback.Error{Fallback: second} // for an HTTP response
	require.ErrorIs(t, err, second)
	require.EqualError(t, err, "fallback: no copy")
}

func TestThePolicyIsChecked(t *testing.T) {
	require.EqualError(t, fallback.Policy{}.Check().Err("t"), "t: Answer: is missing, and so is Stale")
	off := *fallback.Off()
	require.NoError(t, off.Check().Err("t"))
	require.True(t, off.IsOff())
	answer := fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return nil, nil }}
	require.NoError(t, answer.Check().Err("t"))
	require.False(t, answer.IsOff())
}
