package retry

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// C2: a bucket keeps its tokens under another budget, at most the new Cap.
func TestC2_ABucketKeepsItsTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) Budget {
			return Budget{
				Share:     rapid.Float64Range(0.01, 1).Draw(t, label+" share"),
				PerSecond: rapid.Float64Range(0.1, 1000).Draw(t, label+" per second"),
				Cap:       rapid.Float64Range(1, 1000).Draw(t, label+" cap"),
			}
		}
		now := mono.Instant{}
		b := draw("first").WithDefaults()
		k := NewBucketAt(b, now)
		held := b.Initial
		t.Repeat(map[string]func(*rapid.T){
			"update": func(t *rapid.T) {
				b = draw("next").WithDefaults()
				k.UpdateAt(b, now)
				held = min(held, b.Cap)
			},
			"take": func(t *rapid.T) {
				if took := k.TakeAt(now); took {
					require.GreaterOrEqual(t, held, 1-1e-5)
					held--
				} else {
					require.Less(t, held, 1+1e-5)
				}
			},
			"earn":   func(t *rapid.T) { k.EarnAt(now); held = min(held+b.Share, b.Cap) },
			"return": func(t *rapid.T) { k.ReturnAt(now); held = min(held+1, b.Cap) },
			"wait": func(t *rapid.T) {
				d := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "wait"))
				now = now.Add(d)
				held = min(held+d.Seconds()*b.PerSecond, b.Cap)
			},
			"": func(t *rapid.T) { require.InDelta(t, held, k.TokensAt(now), 1e-4) },
		})
	})
}

// C2: while updates race with takers, what was taken and what is left make up what
// there was.
func TestC2_ABucketLosesNoToken(t *testing.T) {
	const workers, each, whole = 4, 20_000, 1e6
	now := mono.Now()
	k := NewBucketAt(Budget{PerSecond: 0.1, Cap: whole, Initial: whole, Share: 1}, now)
	var takers, updates sync.WaitGroup
	stop := make(chan struct{})
	for u := range 2 {
		updates.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					k.UpdateAt(Budget{PerSecond: 0.1 * float64(1+(i+u)%3), Cap: whole}, now)
				}
			}
		})
	}
	for range workers {
		takers.Go(func() {
			for i := range each {
				if !k.TakeAt(now) {
					t.Error("there are tokens enough")
				}
				if i%2 == 0 {
					k.ReturnAt(now)
				}
			}
		})
	}
	takers.Wait()
	close(stop)
	updates.Wait()
	require.InDelta(t, whole-workers*each/2, k.TokensAt(now), 1e-3)
}

// What has no bounds keeps none, and what is no budget changes nothing; either is
// told.
func TestABucketIsUpdatedByABudgetOnly(t *testing.T) {
	var none *Bucket
	require.ErrorIs(t, none.Update(Budget{}), errBounds)
	require.NoError(t, none.Update(NoBudget()))
	require.True(t, none.Take())
	k := bucketOf(t, Budget{Initial: 3, PerSecond: 1e-6})
	require.ErrorIs(t, k.Update(NoBudget()), errBounds)
	require.ErrorContains(t, k.Update(Budget{Share: -1}), "retry: Budget.Share = -1")
	require.InDelta(t, 3, k.Tokens(), 0.01)
	require.NoError(t, k.Update(Budget{Cap: 2, PerSecond: 1e-6}))
	require.InDelta(t, 2, k.Tokens(), 0.01)
}

// A caller from outside has no reading of the clock to give.
func TestABucketByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := bucketOf(t, Budget{PerSecond: 1, Initial: 1, Share: 0.5})
		require.True(t, k.Take())
		require.False(t, k.Take())
		k.Return()
		require.True(t, k.Take())
		k.Earn()
		require.False(t, k.Take())
		k.Earn()
		require.True(t, k.Take())
		time.Sleep(time.Second)
		require.True(t, k.Take())
	})
}
