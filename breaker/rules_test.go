package breaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestB2_LateResultsAreNothing(t *testing.T) {
	// A ticket of each kind that is late, ended in each state.
	for _, verdict := range []Verdict{Success, Failure, Neutral, Throttled} {
		for _, probe := range []bool{false, true} {
			for _, in := range []State{Closed, Open, HalfOpen, ForcedOpen, Disabled} {
				t.Run(fmt.Sprintf("%v/probe=%v/%v", verdict, probe, in), func(t *testing.T) {
					c := p0()
					c.MinCalls, c.Window.Calls = 1, 1 // one failure that counts opens
					c.ProbeTimeout = time.Hour
					r := newRig(t, c)
					late := r.admit()
					if probe {
						r.opened()
						r.step(time.Second)
						late = r.probe()
					}
					r.b.reset(r.now)
					switch in {
					case Open:
						r.opened()
					case HalfOpen:
						r.opened()
						r.step(time.Second)
						r.probe()
					case ForcedOpen:
						r.b.forceOpen("", r.now)
					case Disabled:
						r.b.disable(r.now)
					}
					gen, moves, before := r.b.Generation(), len(r.moves), r.counts()
					r.done(late, verdict)
					require.Equal(t, gen, r.b.Generation())
					require.Len(t, r.moves, moves)
					after := r.counts()
					after.Totals.Neutral = before.Totals.Neutral
					require.Equal(t, before, after)
					r.state(in)
				})
			}
		}
	}
}

func TestB3_RatesCompareInIntegers(t *testing.T) {
	for p := 1; p <= 100; p++ {
		c := Config{Window: Window{Calls: 100}, MinCalls: 100, FailureRate: float64(p) / 100}
		for failures, want := range map[int]State{p: Open, p - 1: Closed} {
			r := newRig(t, c)
			r.call(100-failures, Success)
			r.call(failures, Failure)
			require.Equal(t, want, r.b.StateAt(r.now), "%d failures at %d %%", failures, p)

			r = newRig(t, c) // the hundredth result is a success
			r.call(failures, Failure)
			r.call(100-failures, Success)
			require.Equal(t, want, r.b.StateAt(r.now), "%d failures first at %d %%", failures, p)
		}
	}
	for _, of := range []int{3, 7, 9} { // shares that no float64 holds
		for n := 1; n < of; n++ {
			r := newRig(t, Config{MinCalls: of, FailureRate: float64(n) / float64(of)})
			r.call(of-n, Success)
			r.call(n-1, Failure)
			r.state(Closed)
			r.call(1, Failure)
			r.state(Open)
		}
	}
}

func TestB3_EachRuleOpensByItself(t *testing.T) {
	for _, tc := range []struct {
		name  string
		c     Config
		good  int // first
		opens int // then so many failures
		why   Reason
	}{
		{"rate from MinCalls on", Config{MinCalls: 4, FailureRate: 1}, 0, 4, ReasonFailureRate},
		{"rate, window not full", Config{Window: Window{Calls: 100}, MinCalls: 10, FailureRate: 0.5}, 5, 5, ReasonFailureRate},
		{"failures, whatever the successes", Config{Failures: 3}, 1000, 3, ReasonFailures},
		{"failures, below MinCalls", Config{Failures: 2, FailureRate: 0.5}, 0, 2, ReasonFailures},
		{"consecutive, below MinCalls", Config{Consecutive: 3, FailureRate: 0.5}, 0, 3, ReasonConsecutive},
		{"consecutive without a window", Config{Consecutive: 1}, 3, 1, ReasonConsecutive},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.c)
			r.call(tc.good, Success)
			r.call(tc.opens-1, Failure)
			r.call(1, Neutral) // B3: breaks no row
			r.state(Closed)
			r.call(1, Failure)
			r.state(Open)
			require.Equal(t, tc.why, r.lastReason())
			if tc.c.Consecutive > 0 {
				require.Equal(t, tc.opens, r.moves[0].Counts.Consecutive, "the counts include the last result")
			} else {
				require.Equal(t, tc.opens, r.moves[0].Counts.Failures)
			}
		})
	}
}

func TestB3_SlowIsTheTimeToTheAnswer(t *testing.T) {
	r := newRig(t, Config{SlowCall: 100 * ms, MinCalls: 2, SlowRate: 1})
	for range 10 {
		tk := r.admit()
		r.step(100 * ms)
		tk.answeredAt(r.now)
		r.step(time.Hour) // a long body
		r.done(tk, Success)
	}
	require.Zero(t, r.counts().Slow)
	r.state(Closed)
	r.step(time.Hour)
	for range 2 {
		tk := r.admit()
		r.step(100*ms + 1)
		tk.answeredAt(r.now)
		r.done(tk, Success)
	}
	r.state(Open)
	require.Equal(t, ReasonSlowRate, r.lastReason())
}

func TestB4_ASuccessClearsNoWindow(t *testing.T) {
	r := newRig(t, Config{Failures: 5, Window: Window{Calls: 10}})
	for range 4 {
		r.call(1, Failure)
		r.call(1, Success)
	}
	require.Equal(t, 4, r.counts().Failures)
	r.call(1, Failure)
	r.state(Open)
}

func TestB5_LastResultsLeaveOneByOne(t *testing.T) {
	for _, n := range []int{1, 5, 64, 100, 200} {
		r := newRig(t, Config{Window: Window{Calls: n}, MinCalls: n, FailureRate: 1})
		if n > 1 {
			r.call(1, Success)
			r.call(n-1, Failure)
			r.state(Closed)
		}
		for i := range 3 * n {
			r.call(1, Success)
			require.Equal(t, max(0, n-1-i), r.counts().Failures)
		}
		require.Equal(t, n, r.counts().Results)
	}
}

func TestB5_ABusyWindowKeepsItsRate(t *testing.T) {
	for name, c := range map[string]Config{
		"slow": {FailureRate: 0.5, Consecutive: 3, SlowCall: 1, SlowRate: 1},
		"":     {FailureRate: 0.5, Consecutive: 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c)
			ep := r.b.now.Load()
			l := &ep.rules.span
			n := int(l.full/l.total) - 3
			ep.sum.Store(uint64(n)*l.total + uint64(n/4)*l.failed + uint64(n/8)*l.slow)
			r.call(1, Success)
			r.step(2 * time.Second)
			r.call(3, Success)
			r.call(1, Failure)
			c := r.counts()
			require.InDelta(t, n/2, c.Results, 4)
			require.InDelta(t, n/8, c.Failures, 4)
			require.InDelta(t, n/16*int(l.slow), c.Slow, 4)
			require.Equal(t, 1, c.Consecutive)
			r.step(2 * time.Second)
			r.call(1, Success)
			require.Equal(t, c.Results+1, r.counts().Results)
			r.step(time.Hour)
			require.Zero(t, r.counts().Results)
		})
	}
}

func TestB3_ASuccessEndsARowThatHasLeftTheWindow(t *testing.T) {
	r := newRig(t, Config{Consecutive: 3, FailureRate: 0.5})
	r.call(2, Failure)
	r.step(time.Minute)
	r.b.release(r.now) // moves the window on, and does nothing else
	require.Equal(t, 2, r.counts().Consecutive)
	require.Zero(t, r.counts().Results)
	r.call(1, Success)
	require.Zero(t, r.counts().Consecutive)
}
