package breaker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// A breaker with a clock and a jitter of its caller's does the same each time, from
// whatever moment on.
func TestABreakerOfItsCallersClock(t *testing.T) {
	course := func(start mono.Instant) (openings []time.Duration) {
		c := Config{Consecutive: 1, Cooldown: time.Second, Jitter: 0.5, Window: Window{Span: time.Second}}
		b, err := NewAt("b", c, start, rand.New(rand.NewPCG(1, 2)).Float64)
		require.NoError(t, err)
		for now, end := start, start.Add(time.Minute); now.Before(end); now = now.Add(time.Millisecond) {
			if ticket, err := b.AllowAt(now); err == nil {
				openings = append(openings, now.Sub(start))
				ticket.DoneAt(Outcome{Verdict: Failure}, now)
			}
		}
		return openings
	}
	first := course(mono.Instant{})
	require.Greater(t, len(first), 5)
	for _, start := range []mono.Instant{{}, mono.Unpack(12345), mono.Unpack(-1 << 60)} {
		require.Equal(t, first, course(start))
	}

	draws := 0
	b, err := NewAt("b", Config{Consecutive: 1, Cooldown: time.Second, Jitter: 0.2}, mono.Instant{}, func() float64 { draws++; return 0 })
	require.NoError(t, err)
	ticket, err := b.AllowAt(mono.Instant{})
	require.NoError(t, err)
	ticket.DoneAt(Outcome{Verdict: Failure}, mono.Instant{})
	require.Equal(t, Open, b.StateAt(mono.Instant{}.Add(800*time.Millisecond-1)))
	require.Equal(t, HalfOpen, b.StateAt(mono.Instant{}.Add(800*time.Millisecond)), "the least of the jitter")
	require.Equal(t, 1, draws)

	_, err = NewAt("b", Config{FailureRate: 2}, mono.Instant{}, nil)
	require.ErrorContains(t, err, "FailureRate = 2")
}

// What NewAt was given draws the jitter after an update too.
func TestTheCallersChanceOutlivesAnUpdate(t *testing.T) {
	c := Config{Consecutive: 1, Cooldown: time.Second, Jitter: 0.5}
	cooldown := func(b *Breaker) time.Duration {
		b.Reset()
		call(t, b, Failure)
		return b.Inspect().Cooldown
	}
	b, err := NewAt("b", c, mono.Now(), func() float64 { return 0 })
	require.NoError(t, err)
	for range 3 {
		require.Equal(t, time.Second/2, cooldown(b))
		c.ProbeSuccesses++
		require.NoError(t, b.Update(c))
	}
}
