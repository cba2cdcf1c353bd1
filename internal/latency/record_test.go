package latency

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func TestEveryLatencyHasItsStep(t *testing.T) {
	last := 0
	for d := time.Duration(1); d > 0 && d < 1<<40; d += d/64 + 1 {
		step := stepOf(d)
		require.GreaterOrEqual(t, step, last, "steps are in order")
		require.Less(t, step, steps)
		last = step
		if d >= 1<<lowestPower && d < 1<<highestPower {
			require.Greater(t, above(step), d)
			require.LessOrEqual(t, float64(above(step)), float64(d)*1.125+1)
		}
	}
	require.Equal(t, steps-1, last)
	require.Equal(t, steps-1, stepOf(math.MaxInt64))
}

// R10: the percentile of the samples of the last minute, at most an eighth too
// long, against a list of them.
func TestR10_ThePercentileOfTheLastMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type sample struct {
			turn int64
			d    time.Duration
		}
		start := mono.Unpack(rapid.Int64Range(-1<<60, 1<<60).Draw(t, "start"))
		share := rapid.Float64Range(0.01, 0.999).Draw(t, "share")
		l := New(share, start)
		var all []sample
		var now time.Duration
		for range rapid.IntRange(1, 30).Draw(t, "bursts") {
			now += time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "pause"))
			top := rapid.Int64Range(1, int64(time.Minute)).Draw(t, "top")
			for i := range rapid.Int64Range(0, 40).Draw(t, "burst") {
				d := time.Duration(max(top*(i*7%40+1)/40, 1<<lowestPower))
				l.Add(d, start.Add(now))
				all = append(all, sample{int64(now / span), d})
			}
			var live []time.Duration
			for _, s := range all {
				if int64(now/span)-s.turn < slots {
					live = append(live, s.d)
				}
			}
			got := l.percentile(start.Add(now))
			require.Equal(t, len(live) == 0, l.Idle(start.Add(now)))
			if len(live) < Samples {
				require.Zero(t, got)
				continue
			}
			slices.Sort(live)
			want := live[int(math.Ceil(share*float64(len(live))))-1]
			require.Greater(t, got, want)
			require.LessOrEqual(t, float64(got), float64(want)*1.125+1)
		}
	})
}

// A goroutine that read the clock long before it records takes nothing back.
func TestALateSampleTakesNothingBack(t *testing.T) {
	l := New(0.9, mono.Instant{})
	at := mono.Instant{}.Add(time.Hour)
	for range Samples {
		l.Add(time.Second, at)
	}
	l.Add(time.Minute, at)
	for age := range 20 {
		l.Add(time.Minute, at.Add(-time.Duration(age+1)*span*slots))
	}
	require.Equal(t, above(stepOf(time.Second)), l.percentile(at))
}

func TestThePercentileIsWorkedOutOnceASecond(t *testing.T) {
	l := New(0.5, mono.Instant{})
	record := func(d time.Duration, at time.Duration) {
		for range 10 * Samples {
			l.Add(d, mono.Instant{}.Add(at))
		}
	}
	require.Zero(t, l.Percentile(mono.Instant{}))
	record(time.Millisecond, 0)
	require.Zero(t, l.Percentile(mono.Instant{}.Add(999*time.Millisecond)))
	require.Equal(t, above(stepOf(time.Millisecond)), l.Percentile(mono.Instant{}.Add(time.Second)))
	record(time.Minute, time.Second)
	record(time.Minute, time.Second)
	require.Equal(t, above(stepOf(time.Millisecond)), l.Percentile(mono.Instant{}.Add(1999*time.Millisecond)))
	require.Equal(t, above(stepOf(time.Minute)), l.Percentile(mono.Instant{}.Add(2*time.Second)))
}

func TestNoSampleIsLost(t *testing.T) {
	l := New(0.5, mono.Instant{})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2_000 {
				l.Add(time.Duration(i%5+1)*time.Millisecond, mono.Instant{}.Add(time.Duration(g)*span/8))
				_ = l.Percentile(mono.Instant{}.Add(time.Duration(i) * time.Millisecond))
			}
		})
	}
	all.Wait()
	total := uint64(0)
	for i := range l.slots[0] {
		total += l.slots[0][i].Load() & math.MaxUint32
	}
	require.Equal(t, uint64(16_000), total)
}

func TestARecordCostsNoAllocation(t *testing.T) {
	l := New(0.95, mono.Instant{})
	now := mono.Instant{}
	require.Zero(t, testing.AllocsPerRun(1_000, func() {
		now = now.Add(time.Second)
		l.Add(time.Millisecond, now)
		_ = l.Percentile(now)
	}))
}

func BenchmarkRecord(b *testing.B) {
	l := New(0.95, mono.Instant{})
	b.Run("Record", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			l.Add(time.Duration(i&1023)<<14, mono.Instant{})
		}
	})
	b.Run("Percentile", func(b *testing.B) {
		for b.Loop() {
			_ = l.Percentile(mono.Instant{})
		}
	})
	b.Run("WorkedOut", func(b *testing.B) {
		for b.Loop() {
			_ = l.percentile(mono.Instant{})
		}
	})
}

func TestANilRecordKnowsNothing(t *testing.T) {
	var none *Record
	none.Update(0.5)
	none.Add(1, mono.Instant{})
	require.Zero(t, none.Percentile(mono.Instant{}))
	require.True(t, none.Idle(mono.Instant{}))
}
