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
		tk.AnsweredAt(r.now)
		r.step(time.Hour) // a long body
		r.done(tk, Success)
	}
	require.Zero(t, r.counts().Slow)
	r.state(Closed)
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

func TestB6_ProbesNeverExceedTheirNumber(t *testing.T) {
	c := p0()
	c.Probes, c.ProbeSuccesses = 3, 3
	r := newRig(t, c)
	r.opened()
	r.step(time.Second)
	ps := []*Ticket{r.probe(), r.probe(), r.probe()}
	open := r.refused()
	require.Equal(t, HalfOpen, open.State())
	require.Equal(t, CauseHalfOpen, open.Cause())
	require.Equal(t, "breaker: db is half-open, its probes are in flight", open.Error())
	r.step(50 * ms)
	require.Equal(t, 150*ms, open.RetryAfterAt(r.now))
	for _, p := range ps {
		require.NotEqual(t, Closed, r.b.StateAt(r.now))
		r.done(p, Success)
	}
	r.state(Closed)
	require.Zero(t, open.RetryAfterAt(r.now))
}

func TestB6_ASlowProbeHasFailed(t *testing.T) {
	c := p0()
	c.ProbeLatency = 100 * ms
	r := newRig(t, c)
	r.opened()
	r.step(time.Second)
	p := r.probe()
	r.step(100*ms + 1)
	r.done(p, Success)
	r.state(Open)
	require.Equal(t, ReasonProbeSlow, r.lastReason())
	r.step(time.Second)
	p = r.probe()
	r.step(100 * ms)
	p.AnsweredAt(r.now) // soon enough, however long the body
	r.step(99 * ms)
	r.done(p, Success)
	r.state(Closed)
}

func TestB7_AnAnsweredLeaseEndsWell(t *testing.T) {
	r := newRig(t, p0())
	r.opened()
	r.step(time.Second)
	p := r.probe()
	r.step(100 * ms)
	p.AnsweredAt(r.now)
	r.step(10 * time.Second)
	r.state(Closed) // what the next call would find
	r.admit()
	require.Equal(t, ReasonRecovered, r.lastReason())
	require.Equal(t, ProbeEnd{Key: "db", Outcome: ProbeSucceeded, Generation: 2, Took: 100 * ms}, r.probes[0])
	r.done(p, Failure) // too late
	r.state(Closed)
	require.Zero(t, r.counts().Results)
}

func TestB7_AnExpiredLeaseIsDatedAtItsEnd(t *testing.T) {
	r := newRig(t, p0())
	r.opened()
	r.step(time.Second)
	r.probe()
	r.step(200*ms + 400*ms)
	require.Equal(t, 600*ms, r.refused().RetryAfterAt(r.now))
	require.Equal(t, ReasonProbeExpired, r.lastReason())

	r.step(600 * ms)
	r.probe()
	r.step(200*ms + time.Second) // the lease and the cooldown after it are over
	r.state(HalfOpen)
	r.probe()
	require.Equal(t, []State{Open, HalfOpen, Open, HalfOpen, Open, HalfOpen}, r.path())
}

func TestB7_AnEarlierEndDecidesAtOnce(t *testing.T) {
	r := newRig(t, p0())
	r.opened()
	r.step(time.Second)
	p := r.probe()
	p.AnsweredAt(r.now)
	r.done(p, Failure)
	r.state(Open)
}

func TestB8_RetryAfterLengthensTheCooldown(t *testing.T) {
	for _, tc := range []struct{ asked, want time.Duration }{
		{0, time.Second}, {-time.Hour, time.Second}, {500 * ms, time.Second},
		{3 * time.Second, 3 * time.Second}, {time.Hour, 6 * time.Second},
	} {
		r := newRig(t, p0())
		r.call(4, Failure)
		late := r.admit()
		r.admit().DoneAt(Outcome{Failure, tc.asked}, r.now)
		require.Equal(t, tc.want, r.refused().RetryAfterAt(r.now), tc.asked)
		require.Equal(t, tc.want, r.moves[0].Cooldown)
		late.DoneAt(Outcome{Failure, time.Hour}, r.now) // changes nothing
		require.Equal(t, tc.want, r.refused().RetryAfterAt(r.now))
		r.step(tc.want)
		r.probe().DoneAt(Outcome{Throttled, tc.asked}, r.now)
		require.Equal(t, tc.want, r.refused().RetryAfterAt(r.now), "a failed probe")
	}
}

func TestB10_AShadowRefusesNothing(t *testing.T) {
	c := p0()
	c.Shadow = true
	r := newRig(t, c)
	r.call(5, Failure)
	r.state(Open)
	r.call(10, Success) // pass, and count nowhere
	require.True(t, r.b.RefusalAt(r.now) == nil)
	require.EqualValues(t, 10, r.counts().Totals.RefusedOpen)
	r.step(time.Second)
	p := r.admit()
	require.False(t, p.Probe(), "nothing may be done differently in a shadow")
	require.Zero(t, p.ProbeLimit())
	r.state(HalfOpen)
	r.call(3, Failure)
	r.done(p, Success)
	r.state(Closed)
	r.b.forceOpen("", r.now)
	r.call(3, Success)
	require.Equal(t, []State{Open, HalfOpen, Closed, ForcedOpen}, r.path())
}

func TestB10_ResetIsClosedAndEmpty(t *testing.T) {
	for _, from := range []State{Closed, Open, HalfOpen, ForcedOpen, Disabled} {
		c := p0()
		c.CooldownFactor, c.RampUp = 3, time.Hour
		r := newRig(t, c)
		if from == Open || from == HalfOpen {
			r.opened()
		}
		switch from {
		case Closed:
			r.call(2, Failure)
		case HalfOpen:
			r.step(time.Second)
			r.probe()
		case ForcedOpen:
			r.b.forceOpen("", r.now)
		case Disabled:
			r.b.disable(r.now)
			r.call(3, Failure)
		}
		r.b.reset(r.now)
		r.state(Closed)
		require.Equal(t, ReasonReset, r.lastReason())
		c2 := r.counts()
		require.Zero(t, c2.Results+c2.Consecutive+c2.Probes)
		r.call(4, Failure) // all are admitted: there is no ramp
		r.state(Closed)
		r.call(1, Failure)
		require.Equal(t, time.Second, r.refused().RetryAfterAt(r.now))
	}
}

func TestB10_ForcingTwiceTakesTheNewReason(t *testing.T) {
	r := newRig(t, p0())
	r.b.forceOpen("one", r.now)
	r.b.forceOpen("two", r.now)
	require.Equal(t, "two", r.refused().Note())
	require.Len(t, r.moves, 1)
	require.Equal(t, "one", r.moves[0].Note)
}

func TestTicketsEndOnce(t *testing.T) {
	r := newRig(t, p0())
	tk := r.admit()
	r.done(tk, Failure)
	r.done(tk, Failure)
	require.Equal(t, 1, r.counts().Results)

	var zero Ticket
	zero.Answered()
	zero.Unwatched()
	zero.Done(Outcome{})
	require.False(t, zero.Probe())
	var none Pair
	none.Answered()
	none.Unwatched()
	none.Done(Outcome{})
	require.Zero(t, none.ProbeLimit())
}

func TestAnInvalidVerdictIsAFailure(t *testing.T) {
	r := newRig(t, p0())
	r.call(4, 0)
	r.call(1, 77)
	r.state(Open)
}
