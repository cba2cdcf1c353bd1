package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// TestB6: an inspection tells what the next call would find, and changes nothing.
func TestB6_AnInspectionFollowsABreakerThroughAnOutage(t *testing.T) {
	b, err := New("db", Config{Consecutive: 2, Cooldown: 10 * time.Second, Jitter: NoJitter, ProbeSuccesses: 1,
		ProbeTimeout: time.Second, RampUp: 10 * time.Second, RampFrom: 0.5})
	require.NoError(t, err)
	now := mono.Instant{}.Add(time.Hour)
	end := func(v Verdict) {
		ticket, err := b.allow(now, false)
		require.NoError(t, err)
		ticket.DoneAt(Outcome{Verdict: v}, now)
	}
	i := b.inspect(now)
	require.Equal(t, Closed, i.State)
	require.Equal(t, "db", i.Name)
	require.False(t, i.Known)
	require.EqualValues(t, 1, i.Admits)
	require.Equal(t, 1, i.Config.Probes, "a default is filled in")

	end(Failure)
	end(Failure)
	now = now.Add(4 * time.Second)
	i = b.inspect(now)
	require.Equal(t, Open, i.State)
	require.Equal(t, ReasonConsecutive, i.Reason)
	require.Equal(t, []time.Duration{4 * time.Second, 10 * time.Second, 6 * time.Second}, []time.Duration{i.For, i.Cooldown, i.Left})
	require.Equal(t, 1, i.Openings)
	require.Zero(t, i.Admits)

	now = now.Add(7 * time.Second) // the cooldown is over, and nobody has called
	generation := b.Generation()
	i = b.inspect(now)
	require.Equal(t, HalfOpen, i.State)
	require.Equal(t, ReasonCooldownOver, i.Reason)
	require.Equal(t, time.Second, i.For)
	require.Equal(t, generation, b.Generation(), "looking changes nothing")

	probe, err := b.allow(now, false)
	require.NoError(t, err)
	require.Equal(t, 1, b.inspect(now).Counts.Probes)
	now = now.Add(2 * time.Second) // its lease has run out, which nobody has found
	i = b.inspect(now)
	require.Equal(t, Open, i.State)
	require.Equal(t, ReasonProbeExpired, i.Reason)
	require.Equal(t, 19*time.Second, i.Left)
	probe.DoneAt(Outcome{Verdict: Success}, now)
	require.Equal(t, 2, b.inspect(now).Openings)

	now = now.Add(19 * time.Second)
	end(Success)
	now = now.Add(5 * time.Second)
	i = b.inspect(now)
	require.Equal(t, Closed, i.State)
	require.Equal(t, ReasonRecovered, i.Reason)
	require.InDelta(t, 0.75, i.Admits, 0.001)

	b.forceOpen("maintenance", now)
	now = now.Add(time.Minute)
	b.forceOpen("still maintenance", now)
	i = b.inspect(now)
	require.Equal(t, ForcedOpen, i.State)
	require.Equal(t, "still maintenance", i.Note)
	require.Equal(t, time.Minute, i.For)
	b.reset(now)
	b.disable(now)
	require.Equal(t, Disabled, b.inspect(now).State)
}

// The parts of a window are the results that a list of them would give.
func TestAnInspectionShowsWhatTheWindowHolds(t *testing.T) {
	type end struct {
		at           mono.Instant
		failed, slow bool
	}
	rapid.Check(t, func(t *rapid.T) {
		byCalls := rapid.Bool().Draw(t, "byCalls")
		config := Config{Window: Window{Span: 10 * time.Second}, SlowCall: time.Second, SlowRate: 1, FailureRate: 1, MinCalls: 30_000}
		if byCalls {
			config.Window = Window{Calls: rapid.IntRange(1, 150).Draw(t, "calls")}
			config.MinCalls = config.Window.Calls // all of it must fail to open
		}
		b := newBreaker("x", compile(config), mono.Instant{})
		var ends []end
		now := mono.Instant{}
		for range rapid.IntRange(0, 400).Draw(t, "ends") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
			e := end{now, rapid.IntRange(0, 9).Draw(t, "failed") == 0, rapid.IntRange(0, 9).Draw(t, "slow") == 0}
			ep := b.present()
			if ep.state() != Closed {
				return
			}
			b.book(ep, result{failed: e.failed, slow: e.slow}, now)
			ends = append(ends, e)
		}
		now = now.Add(time.Duration(rapid.IntRange(0, 12_000).Draw(t, "later")) * time.Millisecond)
		i := b.inspect(now)
		if i.State != Closed {
			return
		}
		var want, got Part
		if byCalls {
			ends = ends[max(0, len(ends)-config.Window.Calls):]
		}
		for _, e := range ends {
			// A bucket is a second long, and the last one up to now.
			if !byCalls && e.at.Pack()/int64(time.Second) <= now.Pack()/int64(time.Second)-10 {
				continue
			}
			want.add(e.failed, e.slow)
		}
		for _, p := range i.Window {
			got.Results += p.Results
			got.Failures += p.Failures
			got.Slow += p.Slow
		}
		require.Equal(t, want, got)
		require.Equal(t, want, Part{i.Counts.Results, i.Counts.Failures, i.Counts.Slow})
		if !byCalls {
			require.Len(t, i.Window, 10)
			last := Part{}
			for _, e := range ends {
				if e.at.Pack()/int64(time.Second) == now.Pack()/int64(time.Second) {
					last.add(e.failed, e.slow)
				}
			}
			require.Equal(t, last, i.Window[9], "the newest part stands last")
			return
		}
		size := (config.Window.Calls + maxParts - 1) / maxParts
		for n, p := range i.Window {
			part := Part{}
			for _, e := range ends[n*size : min(len(ends), (n+1)*size)] {
				part.add(e.failed, e.slow)
			}
			require.Equal(t, part, p, "part %d", n)
		}
	})
}

func (p *Part) add(failed, slow bool) {
	p.Results++
	if failed {
		p.Failures++
	}
	if slow {
		p.Slow++
	}
}
