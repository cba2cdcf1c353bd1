package breaker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Also C2.
func TestD092_AnUpdateKeepsTheState(t *testing.T) {
	c := p0()
	c.Cooldown = 30 * time.Second
	r := newRig(t, c)
	r.opened()
	gen, open := r.b.Generation(), r.refused()
	c.FailureRate, c.Cooldown = 0.9, time.Second
	r.update(c)
	r.state(Open)
	require.Equal(t, gen, r.b.Generation())
	require.Equal(t, 30*time.Second, r.refused().RetryAfterAt(r.now))
	require.Equal(t, 30*time.Second, open.RetryAfterAt(r.now))
	require.EqualValues(t, 1, r.counts().Totals.Opens)

	// A probe in flight keeps the limit it has, and counts.
	r.step(30 * time.Second)
	p := r.probe()
	c.ProbeTimeout, c.ProbeSuccesses = time.Second, 2
	r.update(c)
	require.Equal(t, 200*ms, p.ProbeLimit())
	half := r.refused()
	require.Equal(t, 200*ms, half.RetryAfterAt(r.now))
	r.done(p, Success)
	r.state(HalfOpen)
	require.Equal(t, time.Second, r.probe().ProbeLimit())
	r.step(time.Second)
	r.state(Open)
	require.Equal(t, []State{Open, HalfOpen}, r.path(), "an update is no transition")
}

func TestC2_ResultsAreKeptUnlessTheWindowIsAnother(t *testing.T) {
	slow := p0()
	slow.SlowCall = time.Second
	longer := p0()
	longer.Window.Calls = 11
	rate := p0()
	rate.FailureRate = 0.9
	for name, tc := range map[string]struct {
		c    Config
		kept int
	}{"rate": {rate, 4}, "size": {longer, 0}, "kind": {Config{}, 0}, "slow": {slow, 0}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, p0())
			r.call(4, Failure)
			late := r.admit()
			r.update(tc.c)
			c := r.counts()
			require.Equal(t, tc.kept, c.Results)
			require.Equal(t, 4, c.Consecutive)
			r.done(late, Success) // counts once, in the new window
			r.done(late, Success)
			require.Equal(t, tc.kept+1, r.counts().Results)
		})
	}
}

func TestC2_ANewThresholdIsJudgedByTheNextResult(t *testing.T) {
	c := p0()
	c.FailureRate = 0.9
	r := newRig(t, c)
	r.call(5, Failure)
	r.state(Open)
	r = newRig(t, c)
	r.call(2, Success)
	r.call(6, Failure)
	r.state(Closed)
	c.FailureRate = 0.5
	r.update(c)
	r.state(Closed)
	r.call(1, Success)
	r.state(Open)
}

func TestC2_ABadUpdateIsRefused(t *testing.T) {
	b, err := New("db", p0())
	require.NoError(t, err)
	before := b.now.Load()
	require.ErrorContains(t, b.Update(Config{FailureRate: 50}), "FailureRate = 50")
	require.ErrorContains(t, b.Update(*Off()), "switched off")
	require.Same(t, before, b.now.Load())
	require.NoError(t, b.Update(Config{Consecutive: 1}))
	call(t, b, Failure)
	require.Equal(t, Open, b.State())

	g := newGroup(t, p0(), 0)
	old := g.For("a")
	require.ErrorContains(t, g.Update(Config{Jitter: 3}), "Jitter = 3")
	require.Error(t, g.Update(*Off()))
	require.NoError(t, g.Update(Config{Consecutive: 1}))
	for _, key := range []string{"a", "b"} {
		call(t, g.For(key), Failure)
		require.Equal(t, Open, g.For(key).State())
	}
	require.Same(t, old, g.For("a"))
}

func TestC2_NothingIsLostOrDoubleUnderLoad(t *testing.T) {
	for name, c := range map[string]Config{
		"span":  {Window: Window{Span: time.Hour}, FailureRate: 1},
		"calls": {Window: Window{Calls: maxWindowCalls}, FailureRate: 1, Stall: Stall{After: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaker("db", compile(c), mono.Instant{})
			tk, _ := b.AllowAt(mono.Instant{})
			tk.DoneAt(Outcome{Verdict: Success}, mono.Instant{}) // so that it cannot open
			const workers, each = 32, 500
			var wg, updates sync.WaitGroup
			var stop atomic.Bool
			updates.Go(func() {
				for i := 0; !stop.Load(); i++ {
					c := c
					c.MinCalls = 1 + i%5
					b.update(compile(c), mono.Instant{})
				}
			})
			for w := range workers {
				wg.Go(func() {
					for i := range each {
						tk, err := b.AllowAt(mono.Unpack(int64(i)))
						if err != nil {
							t.Error(err)
							return
						}
						tk.DoneAt(Outcome{Verdict: []Verdict{Success, Failure}[(w+i)%2]}, mono.Unpack(int64(i)))
					}
				})
			}
			wg.Wait()
			stop.Store(true)
			updates.Wait()
			n := b.countsAt(mono.Instant{})
			require.Equal(t, workers*each+1, n.Results)
			require.Equal(t, workers*each/2, n.Failures)
			require.Zero(t, n.Unanswered)
		})
	}
}

// C2: a group that goes on with a part of another's breakers has those very ones,
// and the totals of the rest; the other drops none any more.
func TestC2_APartOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Config{Consecutive: 1}, 2)
		call(t, g.For("kept"), Success)
		call(t, g.For("left"), Failure)
		part := g.Part(func(key string) bool { return key == "kept" })
		require.Same(t, g.For("kept"), part.For("kept"))
		require.NotSame(t, g.For("left"), part.For("left"))
		require.Equal(t, Closed, part.For("left").State())
		require.Equal(t, Open, g.For("left").State(), "for whoever still knows it")
		require.EqualValues(t, 1, part.Evicted().Opens)
		require.EqualValues(t, 1, part.Evictions())

		time.Sleep(time.Hour)
		g.For("one too many")
		require.Zero(t, g.Evictions())
		require.Same(t, g.For("kept"), part.For("kept"))
	})
}

// B10, C2: what a breaker would have done in a shadow is kept apart, also when it
// becomes one, or no longer is.
func TestB10_WhatAShadowWouldHaveDoneIsCountedApart(t *testing.T) {
	c := p0()
	r := newRig(t, c)
	r.opened()
	r.refused()
	r.step(time.Second)
	r.done(r.probe(), Failure)
	did := r.counts().Totals.Actions
	require.Equal(t, Actions{Opens: 2, ProbesFailed: 1, RefusedOpen: did.RefusedOpen}, did)
	require.NotZero(t, did.Refused())

	c.Shadow = true
	r.update(c)
	r.call(7, Success)
	r.step(3 * time.Second)
	r.done(r.admit(), Failure)
	r.call(2, Success)
	would := Actions{Opens: 1, ProbesFailed: 1, RefusedOpen: 9}
	require.Equal(t, Totals{Actions: did, Shadow: would}, r.counts().Totals)
	require.True(t, r.moves[len(r.moves)-1].Shadow)

	c.Shadow = false
	r.update(c)
	r.refused()
	did.RefusedOpen++
	require.Equal(t, Totals{Actions: did, Shadow: would}, r.counts().Totals)
	require.False(t, r.moves[0].Shadow)
}

// C2: of two updates of a group at once, one is in force in the end, for all its
// breakers and those to come. (In real time; see waitsIn.)
func TestC2_TwoUpdatesOfAGroupAtOnce(t *testing.T) {
	g := newGroup(t, Config{}, 0)
	for i := range 10 {
		g.For(fmt.Sprint(i))
	}
	b := g.For("held")
	b.mu.Lock()
	var all sync.WaitGroup
	var errs [2]error
	for n, failures := range []int{5, 7} {
		all.Go(func() { errs[n] = g.Update(Config{Failures: failures}) })
		waitsIn(t, "(*Group).Apply", n+1)
	}
	require.EqualValues(t, 5, g.rules.Load().failures, "the second waits for the first")
	b.mu.Unlock()
	all.Wait()
	require.Equal(t, [2]error{}, errs)
	for key, b := range g.All() {
		require.Equal(t, 7, b.Inspect().Config.Failures, key)
	}
	require.Equal(t, 7, g.For("new").Inspect().Config.Failures)
}
