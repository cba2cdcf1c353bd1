package retry

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func TestR6_TheBucketStepByStep(t *testing.T) {
	type step struct {
		at   time.Duration
		do   string // "earn", "take", "deny" (a take that fails), "look"
		want float64
	}
	for name, tc := range map[string]struct {
		budget Budget
		steps  []step
	}{
		"a new one holds 10": {Budget{}, []step{{0, "look", 10}, {0, "take", 9}}},
		"a success earns 0.2": {Budget{}, []step{
			{0, "earn", 10.2}, {0, "earn", 10.4}, {0, "take", 9.4},
		}},
		"each second earns 10": {Budget{}, []step{
			{time.Second, "look", 20}, {1050 * time.Millisecond, "take", 19.5},
		}},
		"at most 100 are kept": {Budget{}, []step{
			{9 * time.Second, "look", 100}, {time.Hour, "earn", 100},
			{time.Hour, "take", 99}, {time.Hour, "earn", 99.2}, {1000 * time.Hour, "look", 100},
		}},
		"an empty one denies": {Budget{Initial: 2}, []step{
			{0, "take", 1}, {0, "take", 0}, {0, "deny", 0}, {0, "earn", 0.2}, {0, "deny", 0.2},
			{80 * time.Millisecond, "take", 0}, {80 * time.Millisecond, "deny", 0},
		}},
		"almost no reserve": {Budget{PerSecond: 1e-6, Initial: 1}, []step{
			{0, "take", 0}, {time.Hour, "deny", 0.0036}, {time.Hour, "earn", 0.2036},
		}},
		"initial is no more than the cap": {Budget{Cap: 3}, []step{{0, "look", 3}, {time.Hour, "look", 3}}},
		// Callers read the clock before they come here: time may step back.
		"time steps back": {Budget{}, []step{
			{time.Second, "take", 19}, {0, "look", 9}, {0, "earn", 9.2}, {time.Second, "look", 19.2},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, start := range []mono.Instant{{}, mono.Now(), mono.Unpack(-27 * 365 * 86400e9)} {
				b := NewBucketAt(tc.budget, start)
				for i, s := range tc.steps {
					now := start.Add(s.at)
					switch s.do {
					case "earn":
						b.EarnAt(now)
					case "take":
						require.True(t, b.TakeAt(now), "step %d", i)
					case "deny":
						require.False(t, b.TakeAt(now), "step %d", i)
					}
					require.InDelta(t, s.want, b.TokensAt(now), 1e-6, "step %d", i)
					require.Equal(t, b.TokensAt(now) == b.now.Load().budget.Cap, b.FullAt(now), "step %d", i)
				}
			}
		})
	}
}

func TestR6_TheBucketInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucketOf(t, Budget{})
		require.Equal(t, 10.0, b.Tokens())
		time.Sleep(3 * time.Second)
		require.Equal(t, 40.0, b.Tokens())
		time.Sleep(time.Hour)
		require.True(t, b.FullAt(mono.Now()))
	})
}

func TestR6_NoBudgetHasNoBounds(t *testing.T) {
	b := bucketOf(t, NoBudget())
	require.Nil(t, b)
	b.EarnAt(mono.Now())
	for range 1000 {
		require.True(t, b.TakeAt(mono.Now()))
	}
	require.True(t, b.FullAt(mono.Now()))
	require.Equal(t, math.Inf(1), b.Tokens())
	require.True(t, NoBudget().IsNone())
	require.False(t, Budget{}.IsNone())
}

func bucketOf(t *testing.T, b Budget) *Bucket {
	t.Helper()
	k, err := NewBucket(b)
	require.NoError(t, err)
	return k
}

// Also C1: nothing is bent silently.
func TestR6_ABudgetWithFaultsIsRefused(t *testing.T) {
	k, err := NewBucket(Budget{Cap: math.NaN(), Share: 2})
	require.Nil(t, k)
	require.ErrorContains(t, err, "Budget.Share = 2: must be in (0, 1]")
	require.ErrorContains(t, err, "Budget.Cap = NaN")
}

func TestR6_PropertyTokensAreConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{
			Share:     rapid.Float64Range(0.01, 1).Draw(t, "Share"),
			PerSecond: math.Pow(10, rapid.Float64Range(-6, 6).Draw(t, "log PerSecond")),
			Cap:       rapid.Float64Range(1, 100).Draw(t, "Cap"),
		}
		b.Initial = rapid.Float64Range(0.1, 1).Draw(t, "Initial") * b.Cap
		require.NoError(t, b.check().Err("retry"))
		start := mono.Unpack(rapid.Int64Range(-1e18, 1e18).Draw(t, "start"))
		now, bucket := start, NewBucketAt(b, start)
		model := b.Initial
		slack := 1e-6 + 1e-9*b.PerSecond // one step of the clock, for each operation
		ops := 0
		t.Repeat(map[string]func(*rapid.T){
			"earn": func(t *rapid.T) {
				bucket.EarnAt(now)
				model = min(model+b.Share, b.Cap)
			},
			"take": func(t *rapid.T) {
				took := bucket.TakeAt(now)
				if math.Abs(model-1) > slack*float64(ops+1) {
					require.Equal(t, model >= 1, took)
				}
				if took {
					model--
				}
			},
			"wait": func(t *rapid.T) {
				d := time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "ns"))
				now = now.Add(d)
				model = min(model+d.Seconds()*b.PerSecond, b.Cap)
			},
			"": func(t *rapid.T) {
				ops++
				require.InDelta(t, model, bucket.TokensAt(now), slack*float64(ops))
				require.LessOrEqual(t, bucket.TokensAt(now), b.Cap+slack)
			},
		})
	})
}

func TestR6_NoTokenIsGivenTwice(t *testing.T) {
	// Many goroutines, no time passes: what is taken is what was there and what
	// was earned.
	const workers, each = 4, 50_000
	now := mono.Now()
	b := NewBucketAt(Budget{Share: 0.5, Cap: 1e6, Initial: 100, PerSecond: 1000}, now)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				b.EarnAt(now)
				if b.TakeAt(now) {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	for b.TakeAt(now) {
		taken.Add(1)
	}
	require.EqualValues(t, 100+workers*each/2, taken.Load())
}
