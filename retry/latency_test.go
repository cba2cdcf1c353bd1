package retry

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
		require.Less(t, step, latencySteps)
		last = step
		if d >= 1<<lowestPower && d < 1<<highestPower {
			require.Greater(t, above(step), d)
			require.LessOrEqual(t, float64(above(step)), float64(d)*1.125+1)
		}
	}
	require.Equal(t, latencySteps-1, last)
	require.Equal(t, latencySteps-1, stepOf(math.MaxInt64))
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
		l := newLatency(share, start)
		var all []sample
		var now time.Duration
		for range rapid.IntRange(1, 30).Draw(t, "bursts") {
			now += time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "pause"))
			top := rapid.Int64Range(1, int64(time.Minute)).Draw(t, "top")
			for i := range rapid.Int64Range(0, 40).Draw(t, "burst") {
				d := time.Duration(max(top*(i*7%40+1)/40, 1<<lowestPower))
				l.RecordAt(d, start.Add(now))
				all = append(all, sample{int64(now / latencySpan), d})
			}
			var live []time.Duration
			for _, s := range all {
				if int64(now/latencySpan)-s.turn < latencySlots {
					live = append(live, s.d)
				}
			}
			got := l.percentile(start.Add(now))
			require.Equal(t, len(live) == 0, l.IdleAt(start.Add(now)))
			if len(live) < HedgeSamples {
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
	l := newLatency(0.9, mono.Instant{})
	at := mono.Instant{}.Add(time.Hour)
	for range HedgeSamples {
		l.RecordAt(time.Second, at)
	}
	l.RecordAt(time.Minute, at)
	for age := range 20 {
		l.RecordAt(time.Minute, at.Add(-time.Duration(age+1)*latencySpan*latencySlots))
	}
	require.Equal(t, above(stepOf(time.Second)), l.percentile(at))
}

func TestThePercentileIsWorkedOutOnceASecond(t *testing.T) {
	l := newLatency(0.5, mono.Instant{})
	record := func(d time.Duration, at time.Duration) {
		for range 10 * HedgeSamples {
			l.RecordAt(d, mono.Instant{}.Add(at))
		}
	}
	require.Zero(t, l.PercentileAt(mono.Instant{}))
	record(time.Millisecond, 0)
	require.Zero(t, l.PercentileAt(mono.Instant{}.Add(999*time.Millisecond)))
	require.Equal(t, above(stepOf(time.Millisecond)), l.PercentileAt(mono.Instant{}.Add(time.Second)))
	record(time.Minute, time.Second)
	record(time.Minute, time.Second)
	require.Equal(t, above(stepOf(time.Millisecond)), l.PercentileAt(mono.Instant{}.Add(1999*time.Millisecond)))
	require.Equal(t, above(stepOf(time.Minute)), l.PercentileAt(mono.Instant{}.Add(2*time.Second)))
}

func TestNoSampleIsLost(t *testing.T) {
	l := newLatency(0.5, mono.Instant{})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2_000 {
				l.RecordAt(time.Duration(i%5+1)*time.Millisecond, mono.Instant{}.Add(time.Duration(g)*latencySpan/8))
				_ = l.PercentileAt(mono.Instant{}.Add(time.Duration(i) * time.Millisecond))
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

func TestWithoutAPercentileThereIsNoRecord(t *testing.T) {
	for _, h := range []Hedge{{}, {Delay: time.Second}, {Percentile: 2}} {
		l := NewLatency(h)
		require.Nil(t, l)
		l.RecordAt(time.Second, mono.Instant{})
		require.Zero(t, l.PercentileAt(mono.Instant{}))
	}
	require.NotNil(t, NewLatency(Hedge{Percentile: 0.95}))
}

func TestALatencyCostsNoAllocation(t *testing.T) {
	l := newLatency(0.95, mono.Instant{})
	now := mono.Instant{}
	require.Zero(t, testing.AllocsPerRun(1_000, func() {
		now = now.Add(time.Second)
		l.RecordAt(time.Millisecond, now)
		_ = l.PercentileAt(now)
	}))
}

func BenchmarkLatency(b *testing.B) {
	l := newLatency(0.95, mono.Instant{})
	b.Run("Record", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			l.RecordAt(time.Duration(i&1023)<<14, mono.Instant{})
		}
	})
	b.Run("Percentile", func(b *testing.B) {
		for b.Loop() {
			_ = l.PercentileAt(mono.Instant{})
		}
	})
	b.Run("WorkedOut", func(b *testing.B) {
		for b.Loop() {
			_ = l.percentile(mono.Instant{})
		}
	})
}

func TestANilLatencyKnowsNothing(t *testing.T) {
	var none *Latency
	none.Update(Hedge{Percentile: 0.5})
	none.RecordAt(1, mono.Instant{})
	require.Zero(t, none.PercentileAt(mono.Instant{}))
	require.True(t, none.IdleAt(mono.Instant{}))
}
