package retry

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestR12_StoppedErrorJoinsReasonAndFailure(t *testing.T) {
	last := errors.New("503")
	for _, tc := range []struct {
		err  StoppedError
		text string
		is   []error
	}{
		{StoppedError{ErrNoTime, 2, last},
			"retry: stopped after 2 attempts: no time is left for another attempt; last failure: 503", []error{ErrNoTime, last}},
		{StoppedError{Reason: errOpen, Attempts: 1},
			"retry: stopped after 1 attempt: breaker: open", []error{errOpen}},
		{StoppedError{Attempts: 3, Last: last},
			"retry: stopped after 3 attempts; last failure: 503", []error{last}},
		{StoppedError{}, "retry: stopped after 0 attempts", nil},
	} {
		require.EqualError(t, &tc.err, tc.text)
		require.Len(t, tc.err.Unwrap(), len(tc.is))
		if tc.err.Last != nil {
			require.Equal(t, tc.err.Last, tc.err.Unwrap()[0], "errors.As meets the failure first")
		}
		for _, target := range tc.is {
			require.ErrorIs(t, &tc.err, target)
		}
	}
}
