package bulkhead

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// take takes n permits, which must be free.
func take(t testing.TB, b *Bulkhead, n int) []Permit {
	t.Helper()
	permits := make([]Permit, n)
	for i := range permits {
		var err error
		permits[i], err = b.Acquire(context.Background())
		require.NoError(t, err)
	}
	return permits
}

// end books the permits alike and gives them back.
func end(permits []Permit, failed bool) {
	for i := range permits {
		permits[i].Book(failed)
		permits[i].Release()
	}
}

func TestAdaptiveDefaults(t *testing.T) {
	require.Equal(t, Adaptive{Min: 2, Start: 50, Increase: 1, Decrease: 0.5, Tolerance: 0.1}, Adaptive{Min: 2}.withDefaults(50))
	full := Adaptive{Min: 2, Start: 3, Increase: 4, Decrease: 0.9, Tolerance: 0.3}
	require.Equal(t, full, full.withDefaults(50))
	require.Equal(t, 50, newBulkhead(t, Config{Limit: 50, Adaptive: Adaptive{Min: 2}}).Limit())
	require.Equal(t, 3, newBulkhead(t, Config{Limit: 50, Adaptive: full}).Limit())
}

func TestD059_BadAdaptiveConfigsAreNamed(t *testing.T) {
	for want, a := range map[string]Adaptive{
		"Min = 0: must be set, or the other fields have no effect":                         {Start: 5},
		"Min = -1: must be in [1, Limit = 10]; 0 with no other field set is a fixed limit": {Min: -1},
		"Min = 11: must be in [1, Limit = 10]; 0 with no other field set is a fixed limit": {Min: 11},
		"Start = 1: must be in [Min = 2, Limit = 10], or 0 for Limit":                      {Min: 2, Start: 1},
		"Start = 11: must be in [Min = 2, Limit = 10], or 0 for Limit":                     {Min: 2, Start: 11},
		"Increase = -1: must be at least 1, or 0 for the default":                          {Min: 2, Increase: -1},
		"Decrease = 1: must be in (0, 1), or 0 for the default":                            {Min: 2, Decrease: 1},
		"Decrease = NaN: must be in (0, 1), or 0 for the default":                          {Min: 2, Decrease: math.NaN()},
		"Tolerance = -0.1: must be in (0, 1), or 0 for the default":                        {Min: 2, Tolerance: -0.1},
		"Tolerance = NaN: must be in (0, 1), or 0 for the default":                         {Min: 2, Tolerance: math.NaN()},
	} {
		_, err := New("b", Config{Limit: 10, Adaptive: a})
		require.EqualError(t, err, "bulkhead: Adaptive."+want)
	}
	b := newBulkhead(t, Config{Limit: 10, Adaptive: Adaptive{Min: 2}})
	require.Error(t, b.Resize(Config{Limit: 1, Adaptive: Adaptive{Min: 2}}))
	require.Equal(t, 10, b.Limit())
}

func TestAFixedLimitHearsNothing(t *testing.T) {
	for _, c := range []Config{{Limit: 4}, *Off()} {
		b := newBulkhead(t, c)
		limit := b.Limit()
		for range 100 {
			end(take(t, b, 4), true)
		}
		require.Equal(t, limit, b.Limit())
	}
	var none Permit
	none.Book(true)
}

func TestABurstThatBeganTogetherShrinksTheLimitOnce(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 40, Adaptive: Adaptive{Min: 3}})
	burst := take(t, b, 40)
	end(burst[:4], true)
	require.Equal(t, 40, b.Limit(), "a tenth may fail")
	end(burst[4:5], true)
	require.Equal(t, 20, b.Limit())
	require.Equal(t, 35, b.InUse(), "who is in stays")
	_, err := b.Acquire(t.Context())
	requireFull(t, err, QueueFull)
	end(burst[5:30], true)
	require.Equal(t, 20, b.Limit(), "these began before the decrease")
	second := take(t, b, 10)
	end(burst[30:], false)
	end(second[:2], true)
	require.Equal(t, 20, b.Limit())
	end(second[2:], true)
	require.Equal(t, 10, b.Limit())
	for _, want := range []int{5, 3, 3, 3} {
		end(take(t, b, b.Limit()), true)
		require.Equal(t, want, b.Limit())
	}
	require.True(t, b.Idle())
}

func TestTheLimitGrowsByAStepForEachGoodWindow(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 10, Adaptive: Adaptive{Min: 1, Start: 4, Increase: 3}})
	for _, step := range []struct{ ends, want int }{{3, 4}, {1, 7}, {6, 7}, {1, 10}, {100, 10}} {
		for range step.ends {
			end(take(t, b, 1), false)
		}
		require.Equal(t, step.want, b.Limit())
	}
	// At the ceiling the window begins with the first failure.
	end(take(t, b, 1), true)
	for range 9 {
		end(take(t, b, 1), false)
	}
	end(take(t, b, 1), true)
	require.Equal(t, 10, b.Limit(), "the window of the first has passed")
	end(take(t, b, 1), true)
	require.Equal(t, 5, b.Limit())
}

func TestBookCountsOnceAlsoAfterRelease(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 10, Adaptive: Adaptive{Min: 1}})
	p := take(t, b, 1)
	for range 10 {
		end(p, true)
	}
	require.Equal(t, 10, b.Limit(), "one of ten")
	p = take(t, b, 1)
	p[0].Book(false)
	p[0].Book(true)
	require.Equal(t, 10, b.Limit())
	p[0].Release()
	p = take(t, b, 1)
	p[0].Release()
	p[0].Book(true)
	require.Equal(t, 5, b.Limit())
}

func TestAGrowingLimitLetsTheHeadOfTheQueueIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBulkhead(t, Config{Limit: 4, Queue: 5, Adaptive: Adaptive{Min: 1, Start: 1}})
		running := take(t, b, 1)
		var order []int
		for i := range 2 {
			go func() {
				if _, err := b.Acquire(t.Context()); err == nil {
					order = append(order, i)
				}
			}()
			synctest.Wait()
		}
		running[0].Book(false)
		synctest.Wait()
		require.Equal(t, []int{0}, order)
		require.Equal(t, 2, b.Limit())
		require.Equal(t, 1, b.Waiting())
		running[0].Release()
		synctest.Wait()
		require.Equal(t, []int{0, 1}, order)
	})
}

func TestResizeKeepsWhatTheLimitHasLearned(t *testing.T) {
	adaptive := Adaptive{Min: 2}
	b := newBulkhead(t, Config{Limit: 40, Adaptive: adaptive})
	require.NoError(t, b.Resize(Config{Limit: 60, Adaptive: adaptive}))
	require.Equal(t, 60, b.Limit(), "it stood at the ceiling")
	end(take(t, b, 60), true)
	require.Equal(t, 30, b.Limit())
	old := take(t, b, 20)
	for _, step := range []struct {
		c    Config
		want int
	}{
		{Config{Limit: 80, Adaptive: adaptive}, 30},
		{Config{Limit: 80, Adaptive: Adaptive{Min: 32}}, 32},
		{Config{Limit: 20, Adaptive: adaptive}, 20},
		{Config{Limit: 50}, 50},
		{Config{Limit: 50, Adaptive: Adaptive{Min: 2, Start: 25}}, 25},
	} {
		require.NoError(t, b.Resize(step.c))
		require.Equal(t, step.want, b.Limit())
	}
	end(old, true)
	require.Equal(t, 25, b.Limit(), "those began under another adaptive limit")
	end(take(t, b, 25), true)
	require.Equal(t, 12, b.Limit())

	huge := newBulkhead(t, Config{Limit: math.MaxInt, Adaptive: Adaptive{Min: math.MaxInt, Start: math.MaxInt, Increase: math.MaxInt}})
	end(take(t, huge, 100), true)
	require.EqualValues(t, maxLimit, huge.Limit())
	require.NoError(t, huge.Resize(Config{Limit: math.MaxInt, Adaptive: Adaptive{Min: 1, Increase: math.MaxInt}}))
	end(take(t, huge, 100), true)
	require.EqualValues(t, maxLimit, huge.Limit())

	last := newBulkhead(t, Config{Limit: 3, Adaptive: Adaptive{Min: 1, Decrease: math.Nextafter(1, 0)}})
	end(take(t, last, 1), true)
	require.Equal(t, 2, last.Limit(), "a decrease is one at least")
}

func TestResizeBeginsAWindow(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 10, Adaptive: Adaptive{Min: 1}})
	end(take(t, b, 1), true)
	require.NoError(t, b.Resize(Config{Limit: 10, Adaptive: Adaptive{Min: 1}}))
	end(take(t, b, 9), false) // at the ceiling these begin none
	end(take(t, b, 1), true)
	require.Equal(t, 10, b.Limit())
	end(take(t, b, 1), true)
	require.Equal(t, 5, b.Limit())
}

// The figure in Adaptive's comment: why a share of failures is tolerated.
func TestAFewFailuresDoNotHoldTheLimitDown(t *testing.T) {
	for _, tc := range []struct {
		tolerance     float64
		least, atMost float64
	}{{0, 99, 100}, {1e-9, 10, 20}} {
		rnd := rand.New(rand.NewPCG(1, 2))
		b := newBulkhead(t, Config{Limit: 100, Adaptive: Adaptive{Min: 1, Tolerance: tc.tolerance}})
		sum, n := 0, 0
		for i := range 100_000 {
			end(take(t, b, 1), rnd.Float64() < 0.01)
			if i > 10_000 {
				sum, n = sum+b.Limit(), n+1
			}
		}
		mean := float64(sum) / float64(n)
		t.Logf("tolerance %v: mean limit %.1f of 100", tc.tolerance, mean)
		require.GreaterOrEqual(t, mean, tc.least)
		require.LessOrEqual(t, mean, tc.atMost)
	}
}

func TestAdaptiveDoesNotAllocate(t *testing.T) {
	b := newBulkhead(t, Config{Limit: 10, Adaptive: Adaptive{Min: 1}})
	n := 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p, _ := b.Acquire(context.Background())
		p.Book(n%3 == 0)
		p.Release()
		n++
	}))
	require.Less(t, b.Limit(), 10)
}
