package deadline_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// Whatever is done with it and in whatever order, an attempt's own context shows
// what one made by context.WithTimeout shows.
func TestT1_OwnIsAStandardContext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			caller, cancel := callerOf()
			defer cancel(nil)
			left := time.Duration(rapid.IntRange(1, 5).Draw(t, "left")) * time.Second
			standard, release := context.WithTimeout(caller, left)
			defer release()
			ctx, own := deadline.Bound{Limit: "Attempt", Whole: left, Left: left}.Context(caller, mono.Now(), math.MaxInt64, nil)
			defer own.Release()
			newTwins(cancel, ctx, standard).play(t, map[string]func(*rapid.T){
				"deadline": func(t *rapid.T) {
					want, _ := standard.Deadline()
					got, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, want, got)
				},
				"the attempt ends": func(*rapid.T) {
					own.Release()
					release()
				},
			})
		})
	})
}

// It costs one allocation to whoever only passes it on, and no goroutine to who
// waits for it.
func TestOwnCostsLittle(t *testing.T) {
	bound := deadline.Bound{Limit: "Attempt", Whole: time.Hour, Left: time.Hour}
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() {
		ctx, own := bound.Context(context.Background(), mono.Now(), math.MaxInt64, nil)
		_, _ = ctx.Err(), ctx.Value(keyType{})
		own.Release()
	}))
	before := runtime.NumGoroutine()
	caller, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx, own := bound.Context(caller, mono.Now(), math.MaxInt64, nil)
	child, cancelChild := context.WithCancel(ctx)
	defer cancelChild()
	require.NoError(t, child.Err())
	require.Equal(t, before, runtime.NumGoroutine())
	own.Release()
	require.ErrorIs(t, child.Err(), context.Canceled)
}

// Whoever asks first, and whatever ends it meanwhile.
func TestOwnUnderContention(t *testing.T) {
	for range 500 {
		caller, cancel := context.WithCancel(context.Background())
		ctx, own := deadline.Bound{Limit: "Attempt", Whole: time.Hour, Left: time.Hour}.Context(caller, mono.Now(), math.MaxInt64, nil)
		contend(t, ctx, cancel, own.Release)
	}
}
