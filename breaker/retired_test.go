package breaker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// B13: whoever reads a breaker that its group drops in this moment reads the one
// that has its key now. (In real time: a goroutine that waits for a lock keeps a
// bubble's time from going on.)
func TestB13_ABreakerDroppedWhileItIsRead(t *testing.T) {
	for function, read := range map[string]func(*Breaker, mono.Instant) Totals{
		"inspectAs": func(b *Breaker, now mono.Instant) Totals { return b.inspect(now).Counts.Totals },
		"countsAt":  func(b *Breaker, now mono.Instant) Totals { return b.countsAt(now).Totals },
	} {
		t.Run(function, func(t *testing.T) {
			g := newGroup(t, Config{}, 1)
			now := mono.Now()
			later := now.Add(time.Minute)
			a := g.ForAt("a", now)
			call(t, a, Neutral)

			a.mu.Lock() // the two queue for it, in this order
			go g.ForAt("b", later)
			waitsIn(t, "retire", 1)
			got := make(chan Totals, 1)
			go func() { got <- read(a, later.Add(time.Minute)) }()
			waitsIn(t, function, 1)
			a.mu.Unlock()
			select {
			case totals := <-got:
				require.Zero(t, totals, "the new one has none; those of the dropped one are its group's")
			case <-time.After(30 * time.Second): // of a test that has failed
				t.Fatal("it reads for ever")
			}
			require.EqualValues(t, 1, g.Evicted().Neutral)
		})
	}
}

// B13: a breaker that has recovered and is not used any more can be dropped once
// its ramp is over.
func TestB13_AnUnusedBreakerWhoseRampIsOverCanGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Config{Consecutive: 1, Cooldown: time.Second, ProbeSuccesses: 1, RampUp: time.Minute}, 1)
		b := g.For("a")
		call(t, b, Failure)
		time.Sleep(2 * time.Second)
		call(t, b, Success)
		require.Equal(t, Closed, b.State())
		time.Sleep(time.Minute - 1)
		require.True(t, b.Inspect().Known, "in a ramp")
		require.Equal(t, OverflowKey, g.For("b").Name())
		time.Sleep(2 * time.Second)
		require.False(t, b.Inspect().Known)
		require.Equal(t, "b", g.For("b").Name())
		require.EqualValues(t, 1, g.Evictions())
	})
}
