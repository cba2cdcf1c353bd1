package keyed

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// thing is a value whose idleness a test can set.
type thing struct {
	key  string
	busy atomic.Bool
}

type fixture struct {
	*Registry[*thing]
	now     mono.Instant
	evicted []string
	made    map[string]int
}

func newFixture(most int) *fixture {
	f := &fixture{now: mono.Now(), made: map[string]int{}}
	f.Registry = New(Options[*thing]{
		Max:     most,
		New:     func(key string) *thing { f.made[key]++; return &thing{key: key} },
		Idle:    func(v *thing) bool { return !v.busy.Load() },
		Evicted: func(key string, v *thing) { f.evicted = append(f.evicted, key) },
	})
	return f
}

func (f *fixture) get(key string) *thing   { return f.For(key, f.now) }
func (f *fixture) pass(d time.Duration)    { f.now = f.now.Add(d) }
func (f *fixture) keys() map[string]*thing { return maps.Collect(f.All()) }

const aWhile = 3 * time.Second // longer than any value is kept after a use

func TestB13_OneValuePerKeyUnderAnyRace(t *testing.T) {
	const workers, keys = 8, 50
	var made [keys]atomic.Int32
	r := New(Options[*int]{New: func(key string) *int {
		n, _ := strconv.Atoi(key)
		made[n].Add(1)
		return &n
	}})
	now := mono.Now()
	var seen [workers][keys]*int
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for k := range keys {
				seen[w][k] = r.For(strconv.Itoa(k), now)
			}
		})
	}
	wg.Wait()
	for k := range keys {
		require.EqualValues(t, 1, made[k].Load())
		for w := range workers {
			require.Same(t, seen[0][k], seen[w][k])
		}
	}
	require.Equal(t, keys, r.Len())
}

func TestB13_TheLeastRecentlyUsedIdleValueGoesFirst(t *testing.T) {
	f := newFixture(3)
	for _, key := range []string{"a", "b", "c"} {
		f.get(key)
		f.pass(aWhile)
	}
	f.get("a") // now b is the oldest
	f.pass(aWhile)

	f.get("d")
	require.Equal(t, []string{"b"}, f.evicted)

	f.get("c").busy.Store(true)
	f.pass(aWhile)
	f.get("d")
	f.pass(aWhile)
	f.get("a")
	f.pass(aWhile)
	f.get("e") // c is older than d, but busy
	require.Equal(t, []string{"b", "d"}, f.evicted)
	require.Equal(t, 3, f.Len())
	require.EqualValues(t, 2, f.Evictions())

	f.pass(aWhile)
	f.get("b") // comes back as a new value
	require.Equal(t, 2, f.made["b"])
}

// A look makes no value and keeps none.
func TestAPeekIsNoUse(t *testing.T) {
	f := newFixture(2)
	_, ok := f.Peek("a")
	require.False(t, ok)
	require.Zero(t, f.Len())
	a := f.get("a")
	f.pass(aWhile)
	f.get("b")
	f.pass(aWhile)
	v, ok := f.Peek("a")
	require.True(t, ok)
	require.Same(t, a, v)
	f.get("c")
	require.Equal(t, []string{"a"}, f.evicted)
}

func TestB13_WithNothingIdleNewKeysShareOneValue(t *testing.T) {
	f := newFixture(2)
	f.get("a").busy.Store(true)
	f.get("b").busy.Store(true)
	f.pass(aWhile)

	shared := f.get("c")
	require.Equal(t, "overflow", shared.key)
	require.Same(t, shared, f.get("d"))
	require.Same(t, shared, f.get("overflow"))
	require.Equal(t, "a", f.get("a").key)
	require.Equal(t, 2, f.Len())
	require.Len(t, f.keys(), 3, "the shared value is listed")
	require.Equal(t, map[string]int{"a": 1, "b": 1, "overflow": 1}, f.made)

	f.get("b").busy.Store(false)
	f.pass(aWhile)
	require.Equal(t, "c", f.get("c").key, "once one is idle a new key gets its own")
	require.Equal(t, []string{"b"}, f.evicted)
}

func TestB13_AValueIsSafeForASecondAfterItWasReturned(t *testing.T) {
	f := newFixture(1)
	for range 50 { // at any place between two ticks
		f.pass(aWhile + 37*time.Millisecond)
		key := "k" + strconv.Itoa(len(f.evicted))
		v := f.get(key)
		require.Equal(t, key, v.key)
		f.pass(time.Second)
		require.Equal(t, "overflow", f.get("other").key)
		require.Same(t, v, f.get(key))
		f.pass(aWhile)
		f.get("other")
		require.Equal(t, key, f.evicted[len(f.evicted)-1])
	}
}

func TestD024_AValueWithEvidenceOutlivesAFloodOfMadeUpKeys(t *testing.T) {
	const most = 100
	f := newFixture(most)
	failing := f.get("failing")
	failing.busy.Store(true)
	for i := range 10_000 {
		f.get(fmt.Sprintf("made-up-%d", i))
		require.Same(t, failing, f.get("failing"))
		f.pass(100 * time.Millisecond)
	}
	require.Equal(t, most, f.Len())
	require.NotContains(t, f.evicted, "failing")
	require.Greater(t, len(f.evicted), 5_000)
}

func TestB13_AFloodAtTheBoundCostsFewLooks(t *testing.T) {
	for name, tc := range map[string]struct {
		gap  time.Duration
		busy bool
		most float64 // looks at an entry per new key
		gone uint64  // evictions
	}{
		"slow, all idle": {gap: 10 * time.Millisecond, most: keepShare + 2, gone: 20_000},
		"fast, all idle": {gap: time.Microsecond, most: keepShare + 2, gone: 2_000},
		"fast, all busy": {gap: time.Microsecond, busy: true, most: 2},
		"slow, all busy": {gap: 10 * time.Millisecond, busy: true, most: 20},
	} {
		const most, flood = 2_000, 20_000
		now, looks := mono.Now(), 0
		r := New(Options[int]{
			Max:  most,
			New:  func(string) int { return 0 },
			Idle: func(int) bool { looks++; return !tc.busy },
		})
		for i := range most {
			r.For(strconv.Itoa(i), now)
		}
		now = now.Add(aWhile)
		for i := range flood {
			r.For("flood"+strconv.Itoa(i), now)
			now = now.Add(tc.gap)
		}
		require.LessOrEqual(t, float64(looks)/flood, tc.most, name)
		require.Equal(t, most, r.Len(), name)
		require.Equal(t, tc.gone, r.Evictions(), name)
	}
}

func TestB13_ValuesThatBecomeIdleOneByOneDoNotMakeEveryNewKeySearch(t *testing.T) {
	const most, flood = 1_000, 1_000
	now, looks, turn := mono.Now(), 0, 0
	r := New(Options[int]{
		Max:  most,
		New:  func(key string) int { n, _ := strconv.Atoi(key); return n },
		Idle: func(n int) bool { looks++; return n == turn },
	})
	for i := range most {
		r.For(strconv.Itoa(i), now)
	}
	now = now.Add(aWhile)
	for turn = range flood {
		r.For(strconv.Itoa(most+turn), now)
		now = now.Add(10 * time.Millisecond)
	}
	require.Less(t, looks/flood, 50)
}

func TestB13_AReaderSeesEachValueOnceOrKnowsBetter(t *testing.T) {
	// Sums over live and evicted values never fall: while the count of
	// evictions stands still, All and what Evicted gathered fit together.
	const most, keys = 8, 400
	var gone atomic.Int64
	r := New(Options[*int]{
		Max:     most,
		New:     func(string) *int { return new(int) },
		Evicted: func(string, *int) { gone.Add(1) },
	})
	var wg sync.WaitGroup
	start := mono.Now()
	wg.Go(func() {
		for i := range keys {
			r.For(strconv.Itoa(i), start.Add(time.Duration(i)*aWhile))
		}
	})
	made := make(chan struct{})
	go func() {
		wg.Wait()
		close(made)
	}()
	last := int64(0)
	for done := false; !done; {
		select {
		case <-made:
			done = true
		default:
		}
		before := r.Evictions()
		sum := int64(0)
		for range r.All() {
			sum++
		}
		sum += gone.Load()
		if r.Evictions() == before {
			require.GreaterOrEqual(t, sum, last)
			last = sum
		}
	}
	require.EqualValues(t, keys, last)
}

func TestAPanicInACallbackLeavesTheRegistryUsable(t *testing.T) {
	bad := true
	r := New(Options[int]{New: func(string) int {
		if bad {
			panic("no")
		}
		return 1
	}})
	require.PanicsWithValue(t, "no", func() { r.For("a", mono.Now()) })
	require.Zero(t, r.Len())
	bad = false
	require.Equal(t, 1, r.For("a", mono.Now()))
}

func TestTheRegistryKeepsNoMoreThanTheKey(t *testing.T) {
	request := "GET https://api.example.com/ and a megabyte more"
	key := request[4:27]
	r := New(Options[int]{New: func(string) int { return 0 }})
	r.For(key, mono.Now())
	for held := range r.All() {
		require.Equal(t, key, held)
		require.NotSame(t, unsafe.StringData(key), unsafe.StringData(held))
	}
}

func TestAHitDoesNotAllocate(t *testing.T) {
	r := New(Options[*thing]{New: func(key string) *thing { return &thing{} }})
	keys := []string{"https://api.example.com:443", "b"}
	now := mono.Now()
	for _, k := range keys {
		r.For(k, now)
	}
	i := 0
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		r.For(keys[i&1], now)
		i++
	}))
}

// A registry that takes another's place has the same values, and makes the rest.
func TestARegistryAdopts(t *testing.T) {
	made := 0
	opt := Options[*int]{Max: 3, New: func(string) *int { made++; return new(int) }}
	now := mono.Now()
	old, next := New(opt), New(opt)
	a, b := old.For("a", now), old.For("b", now)
	c := next.For("c", now)
	next.Adopt(old, func(key string, v *int) bool { return key != "b" || v != b })
	require.Same(t, a, next.For("a", now))
	require.Same(t, a, old.For("a", now))
	require.Same(t, c, next.For("c", now))
	require.NotSame(t, b, next.For("b", now))
	require.Equal(t, 4, made)

	full := New(opt)
	for _, key := range []string{"x", "y", "z"} {
		full.For(key, now)
	}
	full.Adopt(old, func(string, *int) bool { return true })
	require.Equal(t, 3, full.Len(), "as far as there is room")
}
