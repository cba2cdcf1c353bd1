package breaker

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func TestD012_EveryMethodMayBeCalledFromAHook(t *testing.T) {
	c := p0()
	var r *rig
	calls := 0
	c.Hooks.Transition = func(tr Transition) {
		calls++
		r.b.StateAt(r.now)
		r.b.countsAt(r.now)
		r.b.RefusalAt(r.now)
		if tk, err := r.b.AllowAt(r.now); err == nil {
			r.done(&tk, Neutral)
		}
		switch tr.Reason {
		case ReasonFailureRate, ReasonCooldownOver, ReasonRecovered:
			r.b.forceOpen("from a hook", r.now)
			r.b.release(r.now)
		}
	}
	r = newRig(t, c)
	r.call(5, Failure)
	require.Equal(t, []State{Open, ForcedOpen, Open}, r.path())
	r.step(time.Second)
	r.b.AllowAt(r.now)
	require.Equal(t, []State{Open, ForcedOpen, Open, HalfOpen, ForcedOpen, Open}, r.path())
	require.Equal(t, 6, calls)
}

func TestB12_APanickingHookWedgesNothing(t *testing.T) {
	for _, end := range []string{"panic", "Goexit"} {
		t.Run(end, func(t *testing.T) {
			c := p0()
			c.Hooks.Transition = func(Transition) {
				if end == "Goexit" {
					runtime.Goexit()
				}
				panic("hook")
			}
			r := newRig(t, c)
			// run runs f on a goroutine of its own and reports whether it returned.
			run := func(f func()) (returned bool, got any) {
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { got = recover() }()
					f()
					returned = true
				})
				wg.Wait()
				return returned, got
			}
			want := any("hook")
			if end == "Goexit" {
				want = nil
			}
			r.call(4, Failure)
			last := r.admit()
			returned, got := run(func() { r.done(last, Failure) })
			require.False(t, returned, "the panic goes on to the caller")
			require.Equal(t, want, got)
			r.state(Open)
			r.step(time.Second)
			returned, _ = run(func() { r.b.AllowAt(r.now) }) // the ticket is lost with the panic
			require.False(t, returned)
			r.state(HalfOpen)
			require.Zero(t, r.counts().Probes, "B1: and its slot is free")
			p := r.probe()
			returned, _ = run(func() { r.done(p, Success) })
			require.False(t, returned)
			r.state(Closed)
			require.Equal(t, []State{Open, HalfOpen, Closed}, r.path())
		})
	}
}

func TestB12_WhatIsLeftIsToldAfterAPanic(t *testing.T) {
	c := p0()
	var ends []ProbeOutcome
	c.Hooks.ProbeFailed = func(p ProbeEnd) {
		ends = append(ends, p.Outcome)
		panic("pager is down")
	}
	r := newRig(t, c)
	r.opened()
	r.step(time.Second)
	r.probe()
	r.step(300 * ms)
	require.PanicsWithValue(t, "pager is down", func() { r.b.AllowAt(r.now) })
	require.Equal(t, []ProbeOutcome{ProbeExpired}, ends)
	require.Equal(t, []State{Open, HalfOpen, Open}, r.path(), "the transition was told all the same")
	require.Equal(t, []ProbeEnd{{Key: "db", Outcome: ProbeExpired, Generation: 2, Took: 200 * ms}}, r.probes)
}

func TestB12_RefusedTellsTheCause(t *testing.T) {
	c := p0()
	var causes []Cause
	c.Hooks.Refused = func(e *OpenError) { causes = append(causes, e.Cause()) }
	r := newRig(t, c)
	r.opened()
	r.refused()
	r.step(time.Second)
	r.probe()
	r.refused()
	r.b.forceOpen("", r.now)
	r.refused()
	require.Equal(t, []Cause{CauseOpen, CauseHalfOpen, CauseForced}, causes)
}

// Also B1, B2 and B6, at 64 goroutines.
func TestB12_TheChainOfEventsIsUnbroken(t *testing.T) {
	for name, window := range map[string]Window{
		"calls": {Calls: 8},
		"span":  {Span: 100 * time.Microsecond, Buckets: 2},
	} {
		t.Run(name, func(t *testing.T) { testChain(t, window) })
	}
}

func testChain(t *testing.T, window Window) {
	var inHook, most atomic.Int64
	var inFlight sync.Map // probes by generation
	var chain []Transition
	var ends int
	alone := func(hook func()) {
		if inHook.Add(1) != 1 {
			t.Error("two hooks run at a time")
		}
		hook()
		inHook.Add(-1)
	}
	c := Config{
		Window: window, MinCalls: 4, FailureRate: 0.5, Consecutive: 4,
		Cooldown: 20 * time.Microsecond, MaxCooldown: 40 * time.Microsecond,
		Probes: 3, ProbeSuccesses: 2, ProbeTimeout: time.Hour,
		Hooks: Hooks{
			Transition: func(tr Transition) { alone(func() { chain = append(chain, tr) }) },
			ProbeEnded: func(ProbeEnd) { alone(func() { ends++ }) },
		},
	}
	rules := compile(c)
	rules.pause = runtime.Gosched
	b := newBreaker("db", rules, mono.Now())
	var wg sync.WaitGroup
	var admitted, refused atomic.Uint64
	each := 3000
	if raceEnabled {
		each = 300
	}
	for g := range 64 {
		wg.Go(func() {
			for i := range each {
				tk, err := b.Allow()
				if err != nil {
					refused.Add(1)
					continue
				}
				admitted.Add(1)
				probe := tk.Probe()
				var probes *atomic.Int64
				if probe {
					of, _ := inFlight.LoadOrStore(tk.ep.generation(), new(atomic.Int64))
					probes = of.(*atomic.Int64)
					n := probes.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
				}
				if i%7 == 0 {
					runtime.Gosched()
				}
				v := []Verdict{Success, Failure, Success, Neutral, Failure}[(g+i)%5]
				if probe {
					probes.Add(-1)
				}
				tk.Done(Outcome{Verdict: v})
				tk.Done(Outcome{Verdict: Failure}) // is nothing
			}
			if g == 0 {
				b.ForceOpen("")
				b.Release()
				b.Disable()
				b.Enable()
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, most.Load(), int64(3))
	require.NotEmpty(t, chain)
	opens := uint64(0)
	for i, tr := range chain {
		require.EqualValues(t, i+1, tr.Generation)
		if i > 0 {
			require.Equal(t, chain[i-1].To, tr.From)
		}
		if tr.To == Open && tr.Reason != ReasonReleased {
			opens++
		}
		// No result came between the one that opened and the opening.
		switch n := tr.Counts; tr.Reason {
		case ReasonFailureRate:
			require.GreaterOrEqual(t, n.Results, 4)
			require.GreaterOrEqual(t, 2*n.Failures, n.Results)
		case ReasonConsecutive:
			require.Equal(t, 4, n.Consecutive)
		}
	}
	totals := b.Counts().Totals
	require.Equal(t, opens, totals.Opens)
	require.EqualValues(t, ends, totals.ProbesSucceeded+totals.ProbesFailed+totals.ProbesExpired+totals.ProbesNeutral)
	require.Equal(t, refused.Load(), totals.Refused())
	require.EqualValues(t, 64*each, admitted.Load()+refused.Load())
}
