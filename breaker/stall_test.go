package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
)

func stallConfig() Config {
	return Config{Stall: Stall{After: 200 * ms, Calls: 10}, FailureRate: 0.5, Jitter: NoJitter}
}

func TestB11_SilenceOpensBeforeTheFirstTimeout(t *testing.T) {
	r := newRig(t, stallConfig())
	for range 200 { // 4 s at 50 calls a second, each answered in 5 ms
		tk := r.admit()
		r.step(5 * ms)
		r.done(tk, Success)
		r.step(15 * ms)
	}
	silence := r.now
	for {
		_, err := r.b.AllowAt(r.now)
		if err != nil {
			break
		}
		r.step(20 * ms)
		require.Less(t, r.now.Sub(silence), time.Second)
	}
	require.Equal(t, ReasonStalled, r.lastReason())
	require.InDelta(t, 400, r.now.Sub(silence).Milliseconds(), 45)
}

func TestB11_LongCallsBesideGoodOnesNeverOpen(t *testing.T) {
	r := newRig(t, stallConfig())
	var long []*Ticket
	for i := range 2000 {
		if i%10 == 0 {
			long = append(long, r.admit()) // never answered
		}
		r.call(1, Success)
		r.step(20 * ms)
	}
	r.state(Closed)
	require.Len(t, long, 200)
	require.Equal(t, 200, r.counts().Unanswered)
}

func TestB11_HalfOfAllInFlight(t *testing.T) {
	for _, tc := range []struct {
		silent, answered int
		state            State
	}{{9, 0, Closed}, {10, 0, Open}, {10, 10, Open}, {10, 11, Closed}} {
		r := newRig(t, stallConfig())
		for range tc.answered {
			tk := r.admit()
			tk.answeredAt(r.now)
		}
		for range tc.silent {
			r.admit()
		}
		r.step(200 * ms)
		r.state(Closed)
		r.step(60 * ms)
		r.state(tc.state)
		require.Empty(t, r.moves, "B6: reading does not transition")
		err := r.b.RefusalAt(r.now)
		require.Equal(t, tc.state == Open, err != nil)
		if err != nil {
			require.Equal(t, 5*time.Second, err.(*OpenError).RetryAfterAt(r.now))
			r.refused()
		}
	}
}

func TestB11_FoundByWhoeverTouchesNext(t *testing.T) {
	for name, touch := range map[string]func(*rig, *Ticket){
		"a call":    func(r *rig, _ *Ticket) { r.refused() },
		"a failure": func(r *rig, t *Ticket) { r.done(t, Failure) },
		"a neutral": func(r *rig, t *Ticket) { r.done(t, Neutral) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, stallConfig())
			for range 10 {
				r.admit()
			}
			last := r.admit()
			r.step(260 * ms)
			touch(r, last)
			r.state(Open)
			require.Equal(t, ReasonStalled, r.lastReason())
			require.Equal(t, 5*time.Second, r.refused().RetryAfterAt(r.now))
		})
	}
	r := newRig(t, stallConfig())
	for range 10 {
		r.admit()
	}
	last := r.admit()
	r.step(260 * ms)
	r.done(last, Success) // not silent, after all
	r.admit()
	r.state(Closed)
}

func TestB11_WhatIsAnsweredOrUnwatchedIsNotSilent(t *testing.T) {
	r := newRig(t, stallConfig())
	for range 50 {
		r.admit().Unwatched()
		tk := r.admit()
		tk.answeredAt(r.now)
	}
	r.step(time.Minute)
	r.state(Closed)
	r.call(1, Success)
	require.Zero(t, r.counts().Unanswered)
}

func TestB11_EveryAttemptLeavesTheRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := stallConfig()
		c.Stall.Calls = 1 << 20
		b := newBreaker("db", compile(c), mono.Instant{})
		now := mono.Unpack(rapid.Int64Range(-1e12, 1e12).Draw(t, "now"))
		var tickets []*Ticket
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.IntRange(-30, 300).Draw(t, "step")) * ms)
			if len(tickets) == 0 || rapid.Bool().Draw(t, "begin") {
				tk, err := b.AllowAt(now)
				require.NoError(t, err)
				tickets = append(tickets, &tk)
			} else {
				i := rapid.IntRange(0, len(tickets)-1).Draw(t, "which")
				if rapid.Bool().Draw(t, "answered") {
					tickets[i].answeredAt(now)
				}
				tickets[i].DoneAt(Outcome{Verdict: Success}, now)
				tickets = append(tickets[:i], tickets[i+1:]...)
			}
			require.Equal(t, len(tickets), b.countsAt(now).Unanswered)
		}
		for _, tk := range tickets {
			tk.Unwatched()
		}
		s := b.now.Load().stall
		_, all := s.waiting(b.now.Load().rules, 0)
		require.Zero(t, all)
		require.Zero(t, s.answered.Load())
	})
}

func TestStallGrid(t *testing.T) {
	for _, after := range []time.Duration{1, 2, 3, 13, 14, 15, 16, 100, 1000, ms, 200 * ms, time.Second, 1<<40 - 1, 1 << 40, time.Hour} {
		shift, slots := stallGrid(after)
		width := time.Duration(1) << shift
		require.Greater(t, time.Duration(slots-1)*width, after-1, "an attempt overdue is older than %v", after)
		require.Less(t, slots, int64(stallPlaces), "a place is not needed twice, %v", after)
		if after > 100 {
			require.LessOrEqual(t, float64(time.Duration(slots)*width), 1.3*float64(after), "%v", after)
		}
	}
}

// An attempt that waits for a permit is neither silent nor slow: the dependency's
// time counts from the moment it is sent.
func TestB11_WhoWaitsForAPermitIsNotSilent(t *testing.T) {
	c := stallConfig()
	c.SlowCall = 100 * ms
	r := newRig(t, c)
	for range 30 { // three times as many as are stuck
		tk := r.admit()
		tk.queue()
		tk.queue() // again is nothing
	}
	require.Zero(t, r.counts().Unanswered)
	for range 10 {
		r.admit()
	}
	r.step(260 * ms)
	_, err := r.b.AllowAt(r.now)
	require.ErrorIs(t, err, ErrOpen, "ten of ten on the wire are silent")

	r = newRig(t, c)
	tk := r.admit()
	tk.queue()
	r.step(time.Second)
	tk.beginAt(r.now)
	require.Equal(t, 1, r.counts().Unanswered)
	r.step(90 * ms)
	r.done(tk, Success)
	require.Zero(t, r.counts().Unanswered)
	require.Zero(t, r.counts().Slow)

	// In half-open the lease goes on, and the latency counts anew.
	probing := p0()
	probing.ProbeLatency = 50 * ms
	for took, want := range map[time.Duration]Reason{50 * ms: ReasonRecovered, 51 * ms: ReasonProbeSlow, 60 * ms: ReasonProbeExpired} {
		r = newRig(t, probing)
		r.opened()
		r.step(time.Second)
		probe := r.probe()
		probe.queue()
		r.step(140 * ms)
		probe.beginAt(r.now)
		r.step(took)
		r.done(probe, Success)
		require.Equal(t, want, r.lastReason())
	}

	var none Ticket
	none.queue()
	none.beginAt(r.now)
}
