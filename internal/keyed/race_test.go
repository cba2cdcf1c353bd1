package keyed

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func TestB13_AReturnedValueIsStillInPlaceWhateverIsEvictedMeanwhile(t *testing.T) {
	type flagged struct{ gone atomic.Bool }
	const workers, keys, rounds = 4, 6, 20_000
	start := mono.Now()
	var clock, wrong atomic.Int64
	r := New(Options[*flagged]{
		Max:     4,
		New:     func(string) *flagged { return new(flagged) },
		Evicted: func(_ string, v *flagged) { v.gone.Store(true) },
	})
	overflow := r.For("overflow", start)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range rounds {
				at := clock.Add(int64(20 * time.Millisecond))
				v := r.For(strconv.Itoa((int(at/int64(700*time.Millisecond))+w%2)%keys), start.Add(time.Duration(at)))
				gone := v.gone.Load()
				if v != overflow && gone && clock.Load()-at < int64(time.Second) {
					wrong.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, wrong.Load())
	require.Greater(t, r.Evictions(), uint64(100), "the race was run")
}

func TestB13_AUseBetweenTheLookAndTheEvictionSavesTheValue(t *testing.T) {
	now := mono.Now()
	var r *Registry[string]
	var evicted []string
	meddle := false
	r = New(Options[string]{
		Max: 2,
		New: func(key string) string { return key },
		Idle: func(v string) bool {
			if v == "old" && meddle {
				r.For("old", now) // another goroutine's call: a hit takes no lock
			}
			return true
		},
		Evicted: func(key, _ string) { evicted = append(evicted, key) },
	})
	r.For("old", now)
	now = now.Add(aWhile)
	r.For("newer", now)
	now = now.Add(aWhile)
	meddle = true
	r.For("newest", now)
	require.Equal(t, []string{"newer"}, evicted)
	require.Equal(t, "old", r.For("old", now))
}

func TestB13_AnEvictedEntryIsNotUsedAgain(t *testing.T) {
	e := newEntry("k", 1, 5)
	require.False(t, e.kill(4), "used since it was looked at")
	require.True(t, e.touch(7))
	require.True(t, e.touch(6), "a reading of the clock taken earlier")
	require.EqualValues(t, 7, e.used.Load(), "which writes nothing")
	require.False(t, e.kill(5), "used since it was looked at")
	require.True(t, e.kill(7))
	require.False(t, e.touch(7))
	require.False(t, e.touch(8))
	require.True(t, newEntry("k", 1, -30<<30).touch(-30<<30), "ticks may be negative")
}
