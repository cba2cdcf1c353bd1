package memory_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fallback/memory"
)

func newStore(t testing.TB, budget int64) *memory.Store {
	t.Helper()
	s, err := memory.New(budget)
	require.NoError(t, err)
	return s
}

// key returns a key as a cache makes them.
func key(n int) string { return fmt.Sprintf("%043d", n) }

func TestABadBudget(t *testing.T) {
	for _, budget := range []int64{0, -1} {
		_, err := memory.New(budget)
		require.EqualError(t, err, fmt.Sprintf("memory: budget = %d: must be positive, in bytes", budget))
	}
}

func TestAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), newStore(t, 1<<20)
		got, err := s.Get(ctx, key(1))
		require.NoError(t, err)
		require.Nil(t, got)
		require.NoError(t, s.Set(ctx, key(1), []byte("a"), time.Minute))
		require.NoError(t, s.Set(ctx, key(1), []byte("b"), 2*time.Minute))
		require.NoError(t, s.Set(ctx, key(2), []byte("c"), time.Minute))
		got, _ = s.Get(ctx, key(1))
		require.Equal(t, "b", string(got))
		require.NoError(t, s.Delete(ctx, key(2)))
		require.NoError(t, s.Delete(ctx, key(3)))
		got, _ = s.Get(ctx, key(2))
		require.Nil(t, got)
		require.Equal(t, 1, s.Len())

		time.Sleep(2*time.Minute - 1)
		got, _ = s.Get(ctx, key(1))
		require.Equal(t, "b", string(got))
		time.Sleep(time.Nanosecond)
		got, _ = s.Get(ctx, key(1))
		require.Nil(t, got)

		require.NoError(t, s.Set(ctx, key(1), []byte("d"), 0))
		got, _ = s.Get(ctx, key(1))
		require.Nil(t, got, "it has no time to live")
	})
}

// What has expired gives its room back without being asked for.
func TestWhatHasExpiredGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), newStore(t, 1<<20)
		for n := range 500 {
			require.NoError(t, s.Set(ctx, key(n), make([]byte, 100), time.Minute))
		}
		require.Equal(t, 500, s.Len())
		for range 3 { // the queue of expiry is coarse
			time.Sleep(2 * time.Minute)
			require.NoError(t, s.Set(ctx, key(1000), nil, time.Minute))
		}
		require.Equal(t, 1, s.Len())
	})
}

// The budget holds at every moment, whatever the sizes and however many write.
func TestTheBudgetHolds(t *testing.T) {
	const budget, largest = 1 << 20, 64 << 10
	s := newStore(t, budget)
	var all sync.WaitGroup
	for seed := range 8 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 800 {
				n := rnd.IntN(500)
				switch rnd.IntN(4) {
				case 0:
					_, _ = s.Get(context.Background(), key(n))
				case 1:
					_ = s.Delete(context.Background(), key(n))
				default:
					_ = s.Set(context.Background(), key(n), make([]byte, rnd.IntN(largest)), time.Hour)
				}
				// One entry of each writer may be on its way in.
				if used := s.Bytes(); used > budget+8*(largest+1024) {
					t.Errorf("%d bytes of %d", used, budget)
					return
				}
			}
		})
	}
	all.Wait()
	_, _ = s.Get(context.Background(), key(0))
	require.LessOrEqual(t, s.Bytes(), int64(budget))
	require.Positive(t, s.Len())

	require.NoError(t, s.Set(context.Background(), key(1000), make([]byte, budget+1), time.Hour))
	got, _ := s.Get(context.Background(), key(1000))
	require.Nil(t, got, "it is larger than the budget")
	require.Positive(t, s.Len(), "and has driven nobody out")
}

// The budget is that of the heap: what the entries take beside their values is
// counted, for small values too.
func TestTheBudgetIsTheHeaps(t *testing.T) {
	for _, size := range []int{0, 100, 4000} {
		const budget = 8 << 20
		before := heap()
		s := newStore(t, budget)
		for n := range 50_000 {
			require.NoError(t, s.Set(t.Context(), strings.Clone(key(n)), make([]byte, size), time.Hour))
		}
		used := heap() - before
		t.Logf("values of %d bytes: heap %d of %d, entries %d", size, used, budget, s.Len())
		require.LessOrEqual(t, used, int64(budget)*5/4, "values of %d bytes", size)
		require.LessOrEqual(t, s.Bytes(), int64(budget))
		require.Greater(t, s.Bytes(), int64(budget)*3/4, "it is used")
		runtime.KeepAlive(s)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// There is no goroutine, so that nothing outlives a store: a bubble would not end,
// and outside the number stays.
func TestNoGoroutine(t *testing.T) {
	use := func(t *testing.T) {
		s := newStore(t, 1<<16)
		for n := range 1000 {
			require.NoError(t, s.Set(t.Context(), key(n), bytes.Repeat([]byte("x"), 500), time.Minute))
			_, _ = s.Get(t.Context(), key(n/2))
		}
	}
	synctest.Test(t, use)
	before := runtime.NumGoroutine()
	use(t)
	for range 1000 { // the bubble's own may still be on their way out
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}
