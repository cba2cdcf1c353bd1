package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// What a fleet and its breakers leave to chance is drawn from what they were given.
func TestAFleetOfItsCallersChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cooldowns, pauses := 0, 0
		f, err := breaker.JoinAt(breaker.Sharing{Store: breakertest.NewMemory(), Worker: "w"}, mono.Now(), func() float64 { pauses++; return 0 })
		require.NoError(t, err)
		c := breaker.Config{Consecutive: 1, Cooldown: time.Second, Jitter: 0.5}
		b, err := f.BreakerAt("b", c, mono.Now(), func() float64 { cooldowns++; return 0 })
		require.NoError(t, err)
		ticket, err := b.Allow()
		require.NoError(t, err)
		ticket.Done(breaker.Outcome{Verdict: breaker.Failure})
		require.Equal(t, 1, cooldowns)
		time.Sleep(500*time.Millisecond - 1)
		require.Equal(t, breaker.Open, b.State())
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State(), "the least of the jitter")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Positive(t, pauses)

		g, err := f.Group(c, 0)
		require.NoError(t, err)
		ticket, err = g.For("b2").Allow()
		require.NoError(t, err)
		ticket.Done(breaker.Outcome{Verdict: breaker.Failure})
		require.Equal(t, 500*time.Millisecond, g.For("b2").Inspect().Cooldown, "of a group as well")

		_, err = breaker.JoinAt(breaker.Sharing{}, mono.Now(), nil)
		require.ErrorContains(t, err, "Store")
		_, err = f.BreakerAt("b", breaker.Config{FailureRate: 2}, mono.Now(), nil)
		require.ErrorContains(t, err, "FailureRate = 2")
	})
}

// Age counts from Join on, whatever the clock shows then: inside a bubble and outside.
func TestAFleetsFirstAge(t *testing.T) {
	age := func(t *testing.T) {
		f, err := breaker.Join(breaker.Sharing{Store: breakertest.NewMemory()})
		require.NoError(t, err)
		require.Less(t, f.Stats().Age, time.Minute)
		require.GreaterOrEqual(t, f.Stats().Age, time.Duration(0))
	}
	t.Run("outside", age)
	synctest.Test(t, func(t *testing.T) {
		age(t)
		f, err := breaker.Join(breaker.Sharing{Store: breakertest.NewMemory()})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, f.Stats().Age)
	})
}
