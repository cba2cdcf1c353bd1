package breaker

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func newGroup(t *testing.T, c Config, maxKeys int) *Group {
	t.Helper()
	g, err := NewGroup(c, maxKeys)
	require.NoError(t, err)
	return g
}

func call(t *testing.T, b *Breaker, v Verdict) {
	t.Helper()
	tk, err := b.Allow()
	require.NoError(t, err)
	tk.Done(Outcome{Verdict: v})
}

func TestB13_OneBreakerForAKeyUnderAnyRace(t *testing.T) {
	g := newGroup(t, Config{}, 0)
	var seen sync.Map
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range 100 {
				key := fmt.Sprint(i)
				b := g.For(key)
				if first, loaded := seen.LoadOrStore(key, b); loaded && first != b || b.Name() != key {
					t.Errorf("two breakers for %s", key)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 100, g.Len())
	n := 0
	for key, b := range g.All() {
		require.Same(t, g.For(key), b)
		n++
	}
	require.Equal(t, 100, n)
}

// Also B13's bound.
func TestD024_AFailingRouteIsNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, p0(), 100)
		for i := range 10_000 {
			if i%1000 == 0 && g.For("failing").State() == Closed {
				call(t, g.For("failing"), Failure)
			}
			call(t, g.For(fmt.Sprint("made-up ", i)), Success)
			require.LessOrEqual(t, g.Len(), 100)
			time.Sleep(100 * ms)
		}
		require.EqualValues(t, 1, g.For("failing").Counts().Totals.Opens)
		require.Greater(t, g.Evictions(), uint64(9000))
	})
}

func TestB13_WhatMayBeDropped(t *testing.T) {
	c := p0()
	c.Consecutive = 100
	c.SlowCall, c.Stall = time.Second, Stall{After: time.Second}
	c.SlowRate = 1
	c.RampUp = time.Minute
	for name, tc := range map[string]struct {
		do   func(r *rig)
		gone bool
	}{
		"new":                  {func(r *rig) {}, true},
		"successes":            {func(r *rig) { r.call(3, Success) }, true},
		"a failure":            {func(r *rig) { r.call(1, Failure) }, false},
		"a failure in a row":   {func(r *rig) { r.call(1, Failure); r.call(1, Success) }, false},
		"a failure long ago":   {func(r *rig) { r.call(1, Failure); r.call(10, Success) }, true},
		"a slow call":          {func(r *rig) { tk := r.admit(); r.step(2 * time.Second); r.done(tk, Success) }, false},
		"in flight":            {func(r *rig) { r.admit() }, false},
		"answered, not ended":  {func(r *rig) { r.admit().answeredAt(r.now) }, false},
		"ended":                {func(r *rig) { tk := r.admit(); tk.answeredAt(r.now); r.done(tk, Success) }, true},
		"open":                 {func(r *rig) { r.opened() }, false},
		"open, cooldown over":  {func(r *rig) { r.opened(); r.step(time.Hour) }, false},
		"forced":               {func(r *rig) { r.b.forceOpen("", r.now) }, false},
		"disabled":             {func(r *rig) { r.b.disable(r.now) }, false},
		"recovered, in a ramp": {func(r *rig) { r.opened(); r.step(time.Second); r.done(r.probe(), Success) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c)
			tc.do(r)
			require.Equal(t, tc.gone, r.b.dispensable(r.now))
		})
	}
	r := newRig(t, Config{Window: Window{Span: time.Second}, FailureRate: 0.5})
	r.call(1, Failure)
	require.False(t, r.b.dispensable(r.now))
	r.step(time.Second)
	require.True(t, r.b.dispensable(r.now), "the failure has left the window")
	r = newRig(t, Config{Consecutive: 3})
	r.call(1, Failure)
	require.False(t, r.b.dispensable(r.now), "a row without a window")
}

func TestB13_NewKeysShareOneBreakerIfNoneCanGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, p0(), 2)
		call(t, g.For("a"), Failure)
		call(t, g.For("b"), Failure)
		time.Sleep(time.Minute)
		c := g.For("c")
		require.Equal(t, OverflowKey, c.Name())
		require.Same(t, c, g.For("d"))
		require.Equal(t, 2, g.Len())
		keys := map[string]bool{}
		for key := range g.All() {
			keys[key] = true
		}
		require.Equal(t, map[string]bool{"a": true, "b": true, OverflowKey: true}, keys)
	})
}

func TestB13_TotalsOfTheEvictedStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := p0()
		c.Cooldown = ms
		g := newGroup(t, c, 1)
		b := g.For("a")
		for b.State() == Closed {
			call(t, b, Failure)
		}
		_, err := b.Allow()
		require.ErrorIs(t, err, ErrOpen)
		time.Sleep(ms)
		call(t, b, Success)
		call(t, b, Neutral)
		require.Equal(t, Closed, b.State())
		before := b.Counts().Totals
		require.Equal(t, Totals{Actions: Actions{Opens: 1, ProbesSucceeded: 1, RefusedOpen: 1}, Neutral: 1}, before)
		time.Sleep(10 * time.Second)
		require.NotSame(t, b, g.For("b"))
		require.Equal(t, before, g.Evicted())
		require.EqualValues(t, 1, g.Evictions())
		require.Equal(t, 1, g.Len())
	})
}

func TestB13_ADroppedBreakerPassesOnWhatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, p0(), 2)
		old := g.For("a")
		var held []*Ticket
		for range 7 { // in flight, which a breaker without a stall rule cannot know
			tk, err := old.Allow()
			require.NoError(t, err)
			held = append(held, &tk)
		}
		time.Sleep(10 * time.Second)
		g.For("b")
		g.For("c")
		require.EqualValues(t, 1, g.Evictions())
		time.Sleep(10 * time.Second)

		held[0].Done(Outcome{Verdict: Failure})
		heir := g.For("a")
		require.NotSame(t, old, heir)
		require.Equal(t, 1, heir.Counts().Failures)
		require.Equal(t, heir.Counts(), old.Counts())
		held[1].Done(Outcome{Verdict: Success}) // would only make it better
		held[2].Done(Outcome{Verdict: Neutral})
		require.EqualValues(t, 1, g.Evicted().Neutral)
		require.Equal(t, 1, heir.Counts().Results)

		tk, err := old.Allow()
		require.NoError(t, err)
		tk.Done(Outcome{Verdict: Failure})
		require.Equal(t, 2, heir.Counts().Failures)
		old.ForceOpen("why")
		require.Equal(t, ForcedOpen, heir.State())
		require.Equal(t, ForcedOpen, old.State())
		require.False(t, old.WouldAdmit())
		_, err = old.Allow()
		require.ErrorIs(t, err, ErrOpen)
		held[3].Done(Outcome{Verdict: Failure}) // the heir has a history of its own
		heir.Reset()
		held[4].Done(Outcome{Verdict: Failure})
		require.Zero(t, heir.Counts().Failures)
	})
}

func TestB13_EvictionUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Config{Consecutive: 1000}, 8)
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := range 100 {
					tk, err := g.For(fmt.Sprint("key ", (w*7+i*3)%40)).Allow()
					if err != nil {
						t.Error(err)
					}
					tk.Done(Outcome{Verdict: Success})
					time.Sleep(500 * ms)
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, g.Len(), 8)
		require.NotZero(t, g.Evictions())
	})
}

func BenchmarkGroup(b *testing.B) {
	const n = 100_000
	g, err := NewGroup(Config{}, n)
	if err != nil {
		b.Fatal(err)
	}
	var bare sync.Map
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("https://host-%d.example.com:443|GET /items/{id}", i)
		bare.Store(keys[i], g.For(keys[i]))
	}
	now := mono.Now()
	i := 0
	next := func() string {
		if i += 7; i >= n {
			i -= n
		}
		return keys[i]
	}
	b.Run("bare sync.Map", func(b *testing.B) {
		for b.Loop() {
			bare.Load(next())
		}
	})
	b.Run("group", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.ForAt(next(), now)
		}
	})
}

// BenchmarkGroupScrape reads the state and counts of 10,000 breakers.
func BenchmarkGroupScrape(b *testing.B) {
	g, err := NewGroup(Config{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		g.For(fmt.Sprint(i))
	}
	for b.Loop() {
		for _, br := range g.All() {
			br.State()
			br.Counts()
		}
	}
}
