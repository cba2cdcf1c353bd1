package timeout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/timeout"
)

// T5: negative limits and contradictions are refused by name, zero is no limit.
func TestT5_LimitsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		limits timeout.Limits
		want   string
	}{
		"none (D054)":            {timeout.Limits{}, ""},
		"usual":                  {timeout.Limits{Total: time.Minute, Attempt: time.Second, FirstMessage: 2 * time.Second, Floor: 10 * time.Millisecond}, ""},
		"attempt alone":          {timeout.Limits{Attempt: time.Hour}, ""},
		"attempt equal to total": {timeout.Limits{Total: time.Second, Attempt: time.Second}, ""},
		"negative total":         {timeout.Limits{Total: -1}, "timeout: Total = -1ns: must not be negative; 0 is no limit"},
		"negative attempt":       {timeout.Limits{Attempt: -time.Second}, "timeout: Attempt = -1s: must not be negative; 0 is no limit"},
		"negative first message": {timeout.Limits{FirstMessage: -1}, "timeout: FirstMessage = -1ns: must not be negative; 0 is no limit"},
		"negative floor":         {timeout.Limits{Floor: -1}, "timeout: Floor = -1ns: must not be negative; 0 is no limit"},
		"negative idle":          {timeout.Limits{Idle: -1}, "timeout: Idle = -1ns: must not be negative; 0 is no limit"},
		"idle not set":           {timeout.Limits{IdleKnownLength: true}, "timeout: IdleKnownLength = true: has no effect without Idle"},
		"attempt above total":    {timeout.Limits{Total: time.Second, Attempt: 2 * time.Second}, "timeout: Attempt = 2s: must not exceed Total = 1s"},
		"floor above total":      {timeout.Limits{Total: time.Second, Floor: time.Second}, "timeout: Floor = 1s: must be less than Total = 1s, or no attempt is ever made"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.limits.Check()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.want)
		})
	}
}

func TestOffSurvivesCopying(t *testing.T) {
	off := *timeout.Off()
	require.True(t, off.IsOff())
	require.False(t, new(timeout.Limits).IsOff())
}

// T2: the kit's limit is ErrExceeded and DeadlineExceeded and a Timeout.
func TestT2_ALimitIsATimeout(t *testing.T) {
	err := error(&timeout.Error{Limit: "Attempt", After: 10 * time.Second, Detail: "no route"})
	for _, err := range []error{err, fmt.Errorf("around: %w", err)} {
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		var limit interface{ Timeout() bool }
		require.ErrorAs(t, err, &limit)
		require.True(t, limit.Timeout())
	}
	require.EqualError(t, err, "timeout: Attempt limit of 10s exceeded: no route")

	floor := error(&timeout.FloorError{Left: time.Millisecond, Floor: time.Second})
	require.ErrorIs(t, floor, timeout.ErrFloor)
	require.NotErrorIs(t, floor, timeout.ErrExceeded)
	require.EqualError(t, floor, "timeout: 1ms left to begin an attempt, Floor is 1s")
}
