package deadline_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// T1: the limit is a real deadline, and the caller's context itself where its own
// deadline is not later.
func TestT1_ABoundIsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound := deadline.Bound{}.Nearer("Attempt", 2*time.Second)

		ctx, own := bound.Context(t.Context(), mono.Now(), math.MaxInt64, nil)
		require.NotNil(t, own)
		until, ok := ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, 2*time.Second, time.Until(until))
		own.Release()
		require.Error(t, ctx.Err(), "released when the attempt ends")

		sooner, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, own = bound.Context(sooner, mono.Now(), time.Second, nil)
		require.Nil(t, own)
		require.Equal(t, sooner, ctx)
		own.Release()
		require.NoError(t, sooner.Err())

		ctx, own = deadline.Bound{}.Context(t.Context(), mono.Now(), math.MaxInt64, nil)
		require.Nil(t, own, "0 is no limit (D054)")
		require.Equal(t, t.Context(), ctx)
	})
}

func TestTheNearestBoundHolds(t *testing.T) {
	total := deadline.Bound{Limit: "Total", Whole: time.Minute, Left: time.Second}
	require.Equal(t, "Total", total.Nearer("Attempt", 2*time.Second).Limit)
	require.Equal(t, "Total", total.Nearer("Attempt", 0).Limit)
	near := total.Nearer("Attempt", time.Millisecond)
	require.Equal(t, deadline.Bound{Limit: "Attempt", Whole: time.Millisecond, Left: time.Millisecond}, near)
	require.EqualError(t, total.Error(), "timeout: Total limit of 1m0s exceeded")
}
