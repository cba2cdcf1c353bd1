package breaker

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

const ms = time.Millisecond

// rig drives one breaker along a clock of its own and keeps its events.
type rig struct {
	*testing.T
	b      *Breaker
	now    mono.Instant
	moves  []Transition
	probes []ProbeEnd
}

// p0 is the policy of the field cases.
func p0() Config {
	return Config{
		Window: Window{Calls: 10}, MinCalls: 5, FailureRate: 0.5,
		Cooldown: time.Second, CooldownFactor: 1, Jitter: NoJitter,
		Probes: 1, ProbeSuccesses: 1, ProbeTimeout: 200 * ms,
	}
}

func newRig(t *testing.T, c Config) *rig {
	t.Helper()
	require.NoError(t, c.Check())
	r := &rig{T: t, now: mono.Instant{}.Add(-7 * time.Hour)}
	hook, ended := c.Hooks.Transition, c.Hooks.ProbeEnded
	c.Hooks.Transition = func(tr Transition) {
		if n := len(r.moves); n > 0 && r.moves[n-1].To != tr.From { // some tests end it on goroutines of theirs
			t.Errorf("B12: the chain of events is broken: from %v, after one to %v", tr.From, r.moves[n-1].To)
		}
		r.moves = append(r.moves, tr)
		if hook != nil {
			hook(tr)
		}
	}
	c.Hooks.ProbeEnded = func(p ProbeEnd) {
		r.probes = append(r.probes, p)
		if ended != nil {
			ended(p)
		}
	}
	r.b = newBreaker("db", compile(c), r.now)
	return r
}

func (r *rig) step(d time.Duration) { r.now = r.now.Add(d) }

func (r *rig) admit() *Ticket {
	r.Helper()
	t, err := r.b.AllowAt(r.now)
	require.NoError(r, err)
	return &t
}

func (r *rig) probe() *Ticket {
	r.Helper()
	t := r.admit()
	require.True(r, t.Probe(), "not a probe")
	return t
}

func (r *rig) refused() *OpenError {
	r.Helper()
	_, err := r.b.AllowAt(r.now)
	require.ErrorIs(r, err, ErrOpen)
	var open *OpenError
	require.ErrorAs(r, err, &open)
	return open
}

func (r *rig) done(t *Ticket, v Verdict) { t.DoneAt(Outcome{Verdict: v}, r.now) }

// call makes n calls that end at once.
func (r *rig) call(n int, v Verdict) {
	r.Helper()
	for range n {
		r.done(r.admit(), v)
	}
}

func (r *rig) state(want State) {
	r.Helper()
	require.Equal(r, want, r.b.StateAt(r.now))
}

func (r *rig) counts() Counts { return r.b.countsAt(r.now) }

// opened brings the breaker from closed to open by failures.
func (r *rig) opened() {
	r.Helper()
	for i := 0; r.b.StateAt(r.now) == Closed; i++ {
		require.Less(r, i, 1000, "failures do not open")
		r.call(1, Failure)
	}
	r.state(Open)
}

func (r *rig) path() (states []State) {
	for _, m := range r.moves {
		states = append(states, m.To)
	}
	return states
}

func (r *rig) lastReason() Reason { return r.moves[len(r.moves)-1].Reason }

// update puts c in force, with the rig's hooks.
func (r *rig) update(c Config) {
	c.Hooks = r.b.now.Load().rules.cfg.Hooks
	r.b.update(compile(c), r.now)
}

// waitsIn returns once so many goroutines wait in a function of this package for a
// lock. It is for real time: such a goroutine keeps a bubble's time from going on.
func waitsIn(t *testing.T, function string, goroutines int) {
	t.Helper()
	buf := make([]byte, 1<<20)
	begin := time.Now()
	for n := 0; n != goroutines; runtime.Gosched() {
		if time.Since(begin) > 30*time.Second { // the test has failed
			t.Fatalf("%d goroutines wait in %s, want %d:\n%s", n, function, goroutines, buf[:runtime.Stack(buf, true)])
		}
		n = 0
		for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "sync.(*Mutex).Lock") && strings.Contains(stack, function+"(") {
				n++
			}
		}
	}
}
