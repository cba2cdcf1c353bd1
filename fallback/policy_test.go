package fallback_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fallback"
)

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
	require.EqualError(t, fallback.Policy{}.Check(), "fallback: Answer: is missing, and so is Stale")
	off := *fallback.Off()
	require.NoError(t, off.Check())
	require.True(t, off.IsOff())
	answer := fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return nil, nil }}
	require.NoError(t, answer.Check())
	require.False(t, answer.IsOff())
}

func TestKinds(t *testing.T) {
	require.Equal(t, "stale", fallback.KindStale.String())
	require.Equal(t, "computed", fallback.KindComputed.String())
	require.Equal(t, "none", fallback.Kind(0).String())
	require.Equal(t, "invalid", fallback.Kind(9).String())
}
