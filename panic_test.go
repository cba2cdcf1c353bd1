package holdfast_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// B1: a panic or a Goexit is a failure, goes on, and leaves nothing behind.
func TestB1_PanicAndGoexitAreFailures(t *testing.T) {
	for name, leave := range map[string]func(){
		"panic":  func() { panic("boom") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quick()
				p.Bulkhead = &bulkhead.Config{Limit: 1}
				k := newKit(t, p)
				for range 5 {
					var recovered any
					returned := false
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						defer func() { recovered = recover() }()
						_, _ = holdfast.Do(t.Context(), k, read, func(context.Context) (int, error) { leave(); return 0, nil })
						returned = true
					}()
					<-ended
					require.False(t, returned)
					if name == "panic" {
						require.Equal(t, "boom", recovered)
					}
				}
				_, err := do(t.Context(), k, read, answers(ok))
				require.ErrorIs(t, err, breaker.ErrOpen, "five failures, and each permit came back")
				time.Sleep(time.Second)
				_, err = do(t.Context(), k, read, answers(ok))
				require.NoError(t, err)
			})
		})
	}
}

// D023: a classifier that panics counts as a failure and leaks nothing.
func TestD023_APanickingClassifierIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		calls := 0
		p.Classify = func(context.Context, call.Info, call.Result) call.Result {
			if calls++; calls <= 5 {
				panic("classifier")
			}
			return call.Result{Class: call.OK}
		}
		k := newKit(t, p)
		for range 5 {
			require.PanicsWithValue(t, "classifier", func() { _, _ = do(t.Context(), k, read, answers(ok)) })
		}
		_, err := do(t.Context(), k, read, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen)
		time.Sleep(time.Second)
		_, err = do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
	})
}

// B1: a hook that panics while a refused attempt gives up leaves nothing behind.
func TestB1_AHookPanicsWhileAnAttemptGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = retry.Off()
		p.Timeout = &timeout.Limits{Attempt: time.Hour}
		p.Breaker.Scope = breaker.PerMethod
		p.Breaker.Window.Span, p.Breaker.Window.Calls = 0, 10
		p.Breaker.Hooks.ProbeEnded = func(breaker.ProbeEnd) { panic("boom") }
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		k, hold := newKit(t, p), make(chan struct{})
		open(t, k) // of the method insert
		time.Sleep(time.Second)
		go func() { _, _ = do(t.Context(), k, read, answers(func(context.Context) error { <-hold; return nil })) }()
		synctest.Wait()
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		probe := call.Info{Target: "db", Method: "insert"}
		// A context of another kind, so that one that is not released would leave
		// a goroutine in the bubble.
		require.PanicsWithValue(t, "boom", func() { _, _ = do(foreign{parent}, k, probe, answers(ok)) })
		close(hold)
		synctest.Wait()
	})
}

// foreign is a context that the standard library does not know.
type foreign struct{ context.Context }

func (f foreign) Value(any) any { return nil }

// B1: a hook that panics leaves nothing behind.
func TestB1_APanickingRetryHookLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{Retry: func(context.Context, holdfast.Retry) { panic("boom") }}})
		require.NoError(t, err)
		for range 3 {
			s := answers(down)
			require.PanicsWithValue(t, "boom", func() { _, _ = do(t.Context(), k, read, s) })
			require.Equal(t, 1, s.hits)
		}
		_, err = do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
	})
}
