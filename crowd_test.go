package holdfast_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// crowded is a kit whose breakers open at the second failure and stay open for an
// hour, and a function that makes a call with it.
func crowded(t *testing.T, change func(*holdfast.Policy)) func(target, resource string, err error) error {
	p := quick()
	p.Retry = retry.Off()
	p.Breaker = &breaker.Config{Consecutive: 2, Cooldown: time.Hour, MaxCooldown: time.Hour}
	change(&p)
	k := newKit(t, p)
	return func(target, resource string, err error) error {
		_, got := holdfast.Do(t.Context(), k, call.Info{Target: target, Method: "m", Resource: resource}, func(context.Context) (int, error) { return 0, err })
		return got
	}
}

// A kit that calls more keys at once than it remembers the state of gives none of them
// that of another.
func TestB13_BeyondTheBoundNoCallGetsTheStateOfAnotherTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := crowded(t, func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 10, Scope: bulkhead.TwoLevel} })
		for i := range 10_000 {
			require.NoError(t, do("a", fmt.Sprint(i), nil))
		}
		for range 2 {
			require.ErrorIs(t, do("a", "x", errDown), errDown)
		}
		require.ErrorIs(t, do("a", "z", nil), breaker.ErrOpen)
		require.NoError(t, do("b", "y", nil), "the breaker of a refuses calls of b")
		require.ErrorIs(t, do("a", "z", nil), breaker.ErrOpen, "the breaker of b lets calls of a pass")
	})
}

func TestD024_AnOpenBreakerIsNotForgottenForMoreTargetsThanThereIsRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := crowded(t, func(*holdfast.Policy) {})
		for range 2 {
			require.ErrorIs(t, do("x", "", errDown), errDown)
		}
		require.ErrorIs(t, do("x", "", nil), breaker.ErrOpen)
		time.Sleep(10 * time.Second) // x was not called for so long, and may have to make room
		for i := range 10_001 {
			require.NoError(t, do(fmt.Sprint("t", i), "", nil))
		}
		require.ErrorIs(t, do("x", "", nil), breaker.ErrOpen)
	})
}
