package deadline_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type keyType struct{}

// twins are a context of ours and a standard one that must show the same, and
// children of theirs.
type twins struct {
	cancel   context.CancelCauseFunc // what both are made of
	contexts [][2]context.Context
}

// callerOf returns what a call's caller may have made, and how he ends it.
func callerOf() (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(context.WithValue(context.Background(), keyType{}, "value"))
}

func newTwins(cancel context.CancelCauseFunc, ours, standard context.Context) *twins {
	return &twins{cancel, [][2]context.Context{{ours, standard}}}
}

// look holds both to each other. Which of two ends came first nobody knows who did not
// look.
func (w *twins) look(t *rapid.T, from, to int) {
	for _, pair := range w.contexts[from:to] {
		synctest.Wait()
		require.Equal(t, pair[1].Err(), pair[0].Err())
		require.Equal(t, context.Cause(pair[1]), context.Cause(pair[0]))
	}
}

// play does to both whatever may be done to any context, and the further steps that
// make both of them end, in any order.
func (w *twins) play(t *rapid.T, further map[string]func(*rapid.T)) {
	ours, standard := w.contexts[0][0], w.contexts[0][1]
	steps := map[string]func(*rapid.T){
		"done": func(t *rapid.T) {
			synctest.Wait()
			select {
			case <-ours.Done():
				require.Error(t, standard.Err())
			default:
				require.NoError(t, standard.Err())
			}
		},
		"value": func(t *rapid.T) {
			require.Equal(t, "value", ours.Value(keyType{}))
			require.Nil(t, ours.Value("another"))
		},
		"child": func(t *rapid.T) {
			a, cancelA := context.WithCancel(ours)
			b, cancelB := context.WithCancel(standard)
			w.contexts = append(w.contexts, [2]context.Context{a, b})
			if rapid.Bool().Draw(t, "ends first") {
				cancelA()
				cancelB()
			}
			_, _ = cancelA, cancelB
		},
		"time passes": func(t *rapid.T) {
			time.Sleep(time.Second)
			w.look(t, 0, 1)
		},
		"the caller ends": func(t *rapid.T) {
			w.cancel(errors.New("cause"))
			w.look(t, 0, 1)
		},
		"": func(t *rapid.T) { w.look(t, 1, len(w.contexts)) },
	}
	for name, step := range further {
		steps[name] = step
	}
	t.Repeat(steps)
	w.look(t, 0, len(w.contexts))
}

// contend has several ask for a context at once while others end it: all see one
// channel and one end.
func contend(t *testing.T, ctx context.Context, others ...func()) {
	t.Helper()
	var all sync.WaitGroup
	channels := make([]<-chan struct{}, 4)
	for i := range channels {
		all.Go(func() {
			_ = ctx.Err()
			channels[i] = ctx.Done()
			_ = ctx.Value(keyType{})
		})
	}
	for _, other := range others {
		all.Go(other)
	}
	all.Wait()
	for _, c := range channels {
		require.Equal(t, channels[0], c)
		<-c
	}
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}
