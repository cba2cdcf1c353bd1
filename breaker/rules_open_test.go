package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
	require.Equal(t, ReasonCooldownOver, open.Reason())
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
	p.answeredAt(r.now) // soon enough, however long the body
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
	p.answeredAt(r.now)
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
	require.Equal(t, ReasonProbeExpired, r.b.RefusalAt(r.now).(*OpenError).Reason())
	require.Equal(t, 600*ms, r.b.RefusalAt(r.now).(*OpenError).RetryAfterAt(r.now))
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
	p.answeredAt(r.now)
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

func TestB8_TheCapComesBeforeTheJitter(t *testing.T) {
	r := compile(Config{Cooldown: time.Second, CooldownFactor: 2, MaxCooldown: 5 * time.Second, Jitter: 0.2})
	for nth, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 9: 5 * time.Second} {
		require.Equal(t, want, r.cooldown(nth, 0, 0))
		require.Equal(t, want*11/10, r.cooldown(nth, 0.5, 0), "also beyond MaxCooldown")
		require.Equal(t, want*8/10, r.cooldown(nth, -1, 0))
		require.Equal(t, 5*time.Second, r.cooldown(nth, -1, time.Hour), "what is asked for is spread no more")
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
	require.EqualValues(t, 10, r.counts().Totals.Shadow.RefusedOpen)
	require.Zero(t, r.counts().Totals.Refused())
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
