package timeout_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/timeout"
)

type keyType struct{}

// Whatever is done with it and in whatever order, an attempt's own context shows
// what one made by context.WithTimeout shows.
func TestT1_OwnIsAStandardContext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			caller, cancel := context.WithCancelCause(context.WithValue(context.Background(), keyType{}, "value"))
			defer cancel(nil)
			left := time.Duration(rapid.IntRange(1, 5).Draw(t, "left")) * time.Second
			standard, release := context.WithTimeout(caller, left)
			defer release()
			ctx, own := timeout.Bound{Limit: "Attempt", Whole: left, Left: left}.Context(caller, mono.Now(), math.MaxInt64)
			defer own.Release()
			type pair struct{ own, standard context.Context }
			children := []pair{{ctx, standard}}

			look := func(p pair) {
				synctest.Wait()
				require.Equal(t, p.standard.Err(), p.own.Err())
				require.Equal(t, context.Cause(p.standard), context.Cause(p.own))
			}
			t.Repeat(map[string]func(*rapid.T){
				"deadline": func(t *rapid.T) {
					want, _ := standard.Deadline()
					got, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, want, got)
				},
				"done": func(t *rapid.T) {
					synctest.Wait()
					select {
					case <-ctx.Done():
						require.Error(t, standard.Err())
					default:
						require.NoError(t, standard.Err())
					}
				},
				"value": func(t *rapid.T) {
					require.Equal(t, "value", ctx.Value(keyType{}))
					require.Nil(t, ctx.Value("another"))
				},
				"child": func(t *rapid.T) {
					a, cancelA := context.WithCancel(ctx)
					b, cancelB := context.WithCancel(standard)
					children = append(children, pair{a, b})
					if rapid.Bool().Draw(t, "ends first") {
						cancelA()
						cancelB()
					}
					_, _ = cancelA, cancelB
				},
				"time passes": func(t *rapid.T) {
					time.Sleep(time.Second)
					// Which of two ends came first nobody knows who did not look.
					look(children[0])
				},
				"the caller ends": func(*rapid.T) {
					cancel(errors.New("cause"))
					look(children[0])
				},
				"the attempt ends": func(*rapid.T) {
					own.Release()
					release()
				},
				"": func(*rapid.T) {
					for _, p := range children[1:] {
						look(p)
					}
				},
			})
			for _, p := range children {
				look(p)
			}
		})
	})
}

// It costs one allocation to whoever only passes it on, and no goroutine to who
// waits for it.
func TestOwnCostsLittle(t *testing.T) {
	bound := timeout.Bound{Limit: "Attempt", Whole: time.Hour, Left: time.Hour}
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() {
		ctx, own := bound.Context(context.Background(), mono.Now(), math.MaxInt64)
		_, _ = ctx.Err(), ctx.Value(keyType{})
		own.Release()
	}))
	before := runtime.NumGoroutine()
	caller, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx, own := bound.Context(caller, mono.Now(), math.MaxInt64)
	child, cancelChild := context.WithCancel(ctx)
	defer cancelChild()
	require.NoError(t, child.Err())
	require.Equal(t, before, runtime.NumGoroutine())
	own.Release()
	require.ErrorIs(t, child.Err(), context.Canceled)
}

// Whoever asks first, and whatever ends it meanwhile, all see one channel and
// one error.
func TestOwnUnderContention(t *testing.T) {
	for range 500 {
		caller, cancel := context.WithCancel(context.Background())
		ctx, own := timeout.Bound{Limit: "Attempt", Whole: time.Hour, Left: time.Hour}.Context(caller, mono.Now(), math.MaxInt64)
		var all sync.WaitGroup
		channels := make([]<-chan struct{}, 4)
		for i := range channels {
			all.Go(func() {
				_ = ctx.Err()
				channels[i] = ctx.Done()
				_ = ctx.Value(keyType{})
			})
		}
		all.Go(cancel)
		all.Go(own.Release)
		all.Wait()
		for _, c := range channels {
			require.Equal(t, channels[0], c)
			<-c
		}
		require.ErrorIs(t, ctx.Err(), context.Canceled)
	}
}
