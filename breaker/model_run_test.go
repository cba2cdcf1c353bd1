package breaker

import (
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// checks sets the number of random cases unless the command line says it.
func checks(t *testing.T, n string) {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if !set {
		old := flag.Lookup("rapid.checks").Value.String()
		require.NoError(t, flag.Set("rapid.checks", n))
		t.Cleanup(func() { _ = flag.Set("rapid.checks", old) })
	}
}

// TestModel runs random sequences of everything a breaker can be asked on the
// real one and on the model, and compares what each says after every step
// (B2 to B11).
func TestModel(t *testing.T) {
	n := "4000"
	if raceEnabled { // it has one goroutine
		n = "500"
	}
	checks(t, n)
	rapid.Check(t, func(t *rapid.T) { newDuel(t).run() })
}

// duel is a breaker and its model.
type duel struct {
	*rapid.T
	b       *Breaker
	m       *model
	now     mono.Instant
	events  []modelEvent
	opening []time.Duration // how long the openings last that the model has not yet seen
	real    []*Ticket
	plain   []*modelTicket
}

func newDuel(t *rapid.T) *duel {
	d := &duel{T: t, now: mono.Unpack(rapid.Int64Range(-1e9, 1e9).Draw(t, "origin"))}
	c, m := drawConfig(t)
	d.hook(&c)
	d.b = newBreaker("db", compile(c), d.now)
	d.m = m
	m.c = c.WithDefaults()
	m.since = d.now
	m.spread = func() float64 { return d.b.now.Load().out.spread }
	m.lasts = d.lasts
	return d
}

// hook makes the breaker's events known.
func (d *duel) hook(c *Config) {
	require.NoError(d, c.Check())
	c.Hooks.Transition = func(tr Transition) {
		d.events = append(d.events, modelEvent{
			From: tr.From, To: tr.To, Reason: tr.Reason, Gen: tr.Generation,
			Results: tr.Counts.Results, Failures: tr.Counts.Failures, Slow: tr.Counts.Slow, Row: tr.Counts.Consecutive,
		})
		if tr.To == Open {
			d.opening = append(d.opening, tr.Cooldown)
		}
	}
	c.Hooks.ProbeEnded = func(p ProbeEnd) {
		d.events = append(d.events, modelEvent{Outcome: p.Outcome, Took: p.Took, Gen: p.Generation})
	}
}

// lasts tells the model how long the opening lasts that it has just found, and
// checks that this is within B8.
func (d *duel) lasts() time.Duration {
	require.NotEmpty(d, d.opening, "only the model opens")
	lasts := d.opening[0]
	d.opening = d.opening[1:]
	c := &d.m.c
	nth := d.m.nth
	low, high := modelCooldown(c, nth, -1), modelCooldown(c, nth, 1)
	asked := min(d.m.asked, c.MaxCooldown)
	require.GreaterOrEqual(d, lasts, max(low, asked))
	require.LessOrEqual(d, lasts, max(high, asked))
	return lasts
}

func (d *duel) run() {
	for range rapid.IntRange(1, 60).Draw(d.T, "steps") {
		d.step()
		d.compare()
	}
}

func (d *duel) step() {
	// A reading may be a little older than one that somebody else has used.
	now := d.now
	if rapid.IntRange(0, 9).Draw(d.T, "delayed") == 0 {
		now = now.Add(-time.Duration(rapid.IntRange(0, 30).Draw(d.T, "by")) * time.Millisecond)
	}
	switch op := rapid.SampledFrom([]string{
		"call", "call", "call", "admit", "admit", "admit", "done", "done", "done", "done", "clock", "clock",
		"answered", "unwatched", "queued or sent", "lasts", "probe", "manual", "update",
	}).Draw(d.T, "op"); op {
	case "call":
		d.admit(now, false)
		if n := len(d.real); n > 0 {
			d.done(n-1, now)
		}
	case "admit":
		d.admit(now, false)
	case "probe":
		d.admit(now, true)
	case "done", "answered", "unwatched", "queued or sent", "lasts":
		if len(d.real) == 0 {
			return
		}
		i := rapid.IntRange(0, len(d.real)-1).Draw(d.T, "ticket")
		switch op {
		case "done":
			d.done(i, now)
		case "answered":
			d.real[i].answeredAt(now)
			d.m.answered(d.plain[i], now)
		case "unwatched":
			d.real[i].Unwatched()
			d.plain[i].unwatch()
		case "queued or sent":
			if d.plain[i].queued {
				d.real[i].beginAt(now)
				d.plain[i].begin(now)
				return
			}
			d.real[i].queue()
			d.plain[i].queue()
		case "lasts":
			length := time.Duration(rapid.IntRange(1, 3000).Draw(d.T, "length")) * time.Millisecond
			d.real[i].LastsAt(length, now)
			d.m.lends(d.plain[i], length, now)
		}
	case "clock":
		d.now = d.now.Add(d.drawTime())
	case "manual":
		d.manual(now)
	case "update":
		c, to := drawConfig(d.T)
		d.hook(&c)
		to.c = c.WithDefaults()
		d.b.update(compile(c), now)
		d.m.update(to, now)
	}
}

func (d *duel) drawTime() time.Duration {
	c := &d.m.c
	around := []time.Duration{
		time.Millisecond, 50 * time.Millisecond, c.Cooldown, c.MaxCooldown, c.ProbeTimeout, c.ProbeLatency,
		c.SlowCall, c.Stall.After, c.Stall.After / 3, c.Window.Span, c.Window.Span / 10, c.RampUp / 7, c.RampUp,
	}
	if at := d.b.now.Load(); at.out != nil && at.state() == Open {
		around = append(around, at.out.until.Sub(d.now))
	}
	t := rapid.SampledFrom(around).Draw(d.T, "clock") + time.Duration(rapid.IntRange(-1, 1).Draw(d.T, "off"))
	return max(t, 0)
}

func (d *duel) admit(now mono.Instant, forced bool) {
	allow := d.b.AllowAt
	if forced {
		allow = func(now mono.Instant) (Ticket, error) { return d.b.allow(now, true) }
	}
	real, err := allow(now)
	plain, cause := d.m.admit(now, forced)
	if plain == nil {
		var open *OpenError
		require.ErrorAs(d, err, &open)
		require.Equal(d, cause, open.Cause())
		require.Equal(d, d.m.state, open.State())
		return
	}
	require.NoError(d, err)
	require.Equal(d, plain.inert, real.b == nil)
	require.Equal(d, plain.probe && !d.m.c.Shadow, real.Probe())
	d.real, d.plain = append(d.real, &real), append(d.plain, plain)
}

func (d *duel) done(i int, now mono.Instant) {
	o := Outcome{Verdict: Verdict(rapid.SampledFrom([]int{1, 1, 1, 2, 2, 2, 3, 4, 0}).Draw(d.T, "verdict"))}
	if rapid.IntRange(0, 3).Draw(d.T, "asks") == 0 {
		o.RetryAfter = time.Duration(rapid.IntRange(-1, 5000).Draw(d.T, "retry-after")) * time.Millisecond
	}
	d.real[i].DoneAt(o, now)
	d.m.done(d.plain[i], o, now)
	if rapid.IntRange(0, 3).Draw(d.T, "forget") > 0 { // else it may be ended twice
		d.real = append(d.real[:i], d.real[i+1:]...)
		d.plain = append(d.plain[:i], d.plain[i+1:]...)
	}
}

func (d *duel) manual(now mono.Instant) {
	b, m := d.b, d.m
	do := rapid.SampledFrom([]string{"force", "release", "release", "disable", "enable", "enable", "reset"}).Draw(d.T, "manual")
	switch do {
	case "force":
		b.forceOpen("why", now)
	case "release":
		b.release(now)
	case "disable":
		b.disable(now)
	case "enable":
		b.enable(now)
	case "reset":
		b.reset(now)
	}
	m.settle(now)
	m.turn(now)
	switch {
	case do == "force" && m.state != ForcedOpen:
		m.enter(ForcedOpen, ReasonForced, now)
	case do == "release" && m.state == ForcedOpen:
		m.open(ReasonReleased, 1, now)
	case do == "disable" && m.state != ForcedOpen && m.state != Disabled:
		m.enter(Disabled, ReasonDisabled, now)
	case do == "enable" && m.state == Disabled:
		m.enter(Closed, ReasonEnabled, now)
	case do == "reset":
		m.enter(Closed, ReasonReset, now)
	}
}

// compare compares all that can be read.
func (d *duel) compare() {
	require.Equal(d, d.m.events, d.events, "events")
	require.Equal(d, d.m.gen, d.b.Generation(), "generation")

	state, admit := d.m.look(d.now)
	require.Equal(d, state, d.b.StateAt(d.now), "state")
	err := d.b.RefusalAt(d.now)
	require.Equal(d, admit || d.m.c.Shadow, err == nil, "would admit")
	require.True(d, err == nil || errors.Is(err, ErrOpen))
	if open, _ := err.(*OpenError); open != nil && d.m.state == Open {
		require.Equal(d, d.m.until.Sub(d.now), open.RetryAfterAt(d.now))
	}

	c := d.b.countsAt(d.now)
	twin := *d.m // reading must not move the model's window
	twin.turn(d.now)
	total, failed, slow := 0, 0, 0
	if d.m.state == Closed || d.m.state == Disabled {
		total, failed, slow = twin.window()
	}
	require.Equal(d, []int{total, failed, slow, d.m.row}, []int{c.Results, c.Failures, c.Slow, c.Consecutive}, "window")
	require.Equal(d, []int{len(d.m.probes), d.m.good, d.m.bad}, []int{c.Probes, c.ProbeSuccesses, c.ProbeFailures}, "probes")
	if d.m.c.Stall.After > 0 {
		unanswered := 0
		for _, t := range d.m.flying {
			if !t.answered && !t.gone {
				unanswered++
			}
		}
		require.Equal(d, unanswered, c.Unanswered)
	}
	require.Equal(d, d.m.totals, c.Totals, "totals")
}

func drawConfig(t *rapid.T) (Config, *model) {
	m := &model{}
	one := func(name string, of ...int) int { return rapid.SampledFrom(of).Draw(t, name) }
	time := func(name string, of ...int) time.Duration { return time.Duration(one(name, of...)) * time.Millisecond }
	var c Config
	if one("kind", 0, 1) == 0 {
		c.Window.Calls = one("calls", 1, 3, 10, 64, 65, 100)
		c.MinCalls = min(one("min", 1, 2, 3, 5, 10), c.Window.Calls)
		c.Failures = min(one("failures", 0, 0, 2, 4), c.Window.Calls)
	} else {
		c.Window.Span = time("span", 100, 1000, 1003)
		c.Window.Buckets = one("buckets", 0, 2, 3, 10, 17)
		c.MinCalls = one("min", 1, 2, 3, 5, 10)
		c.Failures = one("failures", 0, 0, 2, 4)
	}
	m.percent.fail = one("failure rate", 0, 0, 10, 34, 50, 57, 100)
	c.FailureRate = float64(m.percent.fail) / 100
	c.Consecutive = one("consecutive", 0, 0, 1, 3)
	if c.SlowCall = time("slow call", 0, 0, 50); c.SlowCall > 0 {
		m.percent.slow = one("slow rate", 20, 50, 100)
		c.SlowRate = float64(m.percent.slow) / 100
	}
	if c.Stall.After = time("stall after", 0, 0, 200); c.Stall.After > 0 {
		c.Stall.Calls = one("stall calls", 1, 2, 3)
	}
	if !c.hasRule() {
		m.percent.fail = 50
	}
	if one("no window", 0, 0, 0, 1) == 1 {
		c.Window, c.MinCalls, c.FailureRate, c.SlowCall, c.SlowRate, c.Failures = Window{}, 0, 0, 0, 0, 0
		c.Consecutive = max(c.Consecutive, 2)
	}
	c.Cooldown = time("cooldown", 100, 1000)
	c.MaxCooldown = time("max cooldown", 1000, 3000)
	c.CooldownFactor = float64(one("factor", 1, 2, 3))
	c.Jitter = float64(one("jitter", -100, 20, 100)) / 100
	c.Probes = one("probes", 1, 2, 3)
	c.ProbeSuccesses = one("probe successes", 1, 2, 3)
	if one("probe rule", 0, 1) == 1 {
		m.percent.probe = one("probe rate", 34, 50, 67, 100)
		c.ProbeRate = float64(m.percent.probe) / 100
		c.ProbeSuccesses = min(c.ProbeSuccesses-1, c.Probes)
	}
	c.ProbeTimeout = time("probe timeout", 100, 2000)
	c.ProbeLatency = time("probe latency", 0, 0, 60)
	if c.RampUp = time("ramp", 0, 0, 1000); c.RampUp > 0 {
		c.RampFrom = float64(one("ramp from", 1, 10, 50)) / 100
	}
	c.CountThrottled = one("throttled", 0, 1) == 1
	c.Shadow = one("shadow", 0, 0, 0, 1) == 1
	return c, m
}
