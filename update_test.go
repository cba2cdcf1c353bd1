package holdfast_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// statesOf returns the states of a kit's breakers by name.
func statesOf(k *holdfast.Kit) map[string]breaker.State {
	states := map[string]breaker.State{}
	for name, b := range k.Breakers() {
		states[name] = b.State()
	}
	return states
}

func update(t *testing.T, k *holdfast.Kit, p holdfast.Policy, methods ...map[string]holdfast.Policy) {
	t.Helper()
	c := holdfast.Config{Default: p}
	for _, m := range methods {
		c.Methods = m
	}
	require.NoError(t, k.Update(c))
}

// C2, D092: an update keeps state, generation, the end of the cooldown that runs
// and the window; what is in flight is booked once; a bad one is refused whole.
func TestD092_AnUpdateKeepsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Retry = retry.Off()
		p.Breaker.Cooldown = 30 * time.Second
		k, hold := newKit(t, p), make(chan struct{})
		late := make(chan error, 1)
		for range 2 {
			_, _ = do(t.Context(), k, read, answers(down))
		}
		go func() {
			_, err := do(t.Context(), k, read, answers(func(context.Context) error { <-hold; return errDown }))
			late <- err
		}()
		synctest.Wait()

		p.Breaker.FailureRate = 0.9
		update(t, k, p)
		b := maps.Collect(k.Breakers())["db"]
		require.Equal(t, 2, b.Counts().Failures)
		close(hold)
		require.ErrorIs(t, <-late, errDown)
		require.Equal(t, 3, b.Counts().Failures, "neither lost nor double")

		open(t, k)
		generation := b.Generation()
		time.Sleep(10 * time.Second)
		p.Breaker.Cooldown, p.Breaker.MaxCooldown = time.Second, time.Minute
		p.Breaker.Window = breaker.Window{Span: time.Minute} // another kind
		update(t, k, p)
		require.Equal(t, generation, b.Generation())
		_, err := do(t.Context(), k, read, answers(ok))
		var refusal *breaker.OpenError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, 20*time.Second, refusal.RetryAfter())

		before, err := k.Explain("any")
		require.NoError(t, err)
		bad := p
		bad.Timeout, bad.Breaker = &timeout.Limits{Attempt: -1}, &breaker.Config{FailureRate: 50}
		err = k.Update(holdfast.Config{Default: bad, Methods: map[string]holdfast.Policy{"m": {Bulkhead: &bulkhead.Config{}}}})
		for _, field := range []string{"Default.Timeout.Attempt = -1ns", "Default.Breaker.FailureRate = 50", `Methods["m"].Bulkhead.Limit = 0`} {
			require.ErrorContains(t, err, field)
		}
		after, err := k.Explain("any")
		require.NoError(t, err)
		require.Equal(t, before, after)
		time.Sleep(20 * time.Second)
		_, err = do(t.Context(), k, read, answers(down))
		require.ErrorIs(t, err, errDown, "a probe at the old end")
		_, err = do(t.Context(), k, read, answers(ok))
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, 2*time.Second, refusal.RetryAfter(), "and the next cooldown by the new length, the second in a row")
	})
}

// C2: a changed window starts empty; what does not touch the window keeps it.
func TestC2_AnotherWindowStartsEmpty(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*breaker.Config)
		kept   int
	}{
		"rate":       {func(c *breaker.Config) { c.FailureRate = 0.9 }, 4},
		"cooldown":   {func(c *breaker.Config) { c.Cooldown = time.Minute }, 4},
		"size":       {func(c *breaker.Config) { c.Window.Calls = 20 }, 0},
		"kind":       {func(c *breaker.Config) { c.Window = breaker.Window{Span: time.Minute} }, 0},
		"slow calls": {func(c *breaker.Config) { c.SlowCall = time.Second }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quick()
				p.Retry = retry.Off()
				k := newKit(t, p)
				for range 4 {
					_, _ = do(t.Context(), k, read, answers(down))
				}
				tc.change(p.Breaker)
				update(t, k, p)
				require.Equal(t, tc.kept, maps.Collect(k.Breakers())["db"].Counts().Results)
			})
		})
	}
}

// C2: under another scope new keys start closed; those that both have go on, and
// those that nobody asks for any more are gone.
func TestC2_AnotherScopeStartsClosed(t *testing.T) {
	part := holdfast.Policy{Breaker: quick().Breaker} // an entry's own
	for name, tc := range map[string]struct {
		from, to breaker.Scope
		entry    bool
		want     map[string]breaker.State
	}{
		"target to method":      {breaker.PerTarget, breaker.PerMethod, false, map[string]breaker.State{}},
		"method to target":      {breaker.PerMethod, breaker.PerTarget, false, map[string]breaker.State{}},
		"target to two levels":  {breaker.PerTarget, breaker.TwoLevel, false, map[string]breaker.State{"db": breaker.Open}},
		"two levels to target":  {breaker.TwoLevel, breaker.PerTarget, false, map[string]breaker.State{"db": breaker.Open}},
		"two levels to method":  {breaker.TwoLevel, breaker.PerMethod, false, map[string]breaker.State{"db|insert": breaker.Open}},
		"method to two levels":  {breaker.PerMethod, breaker.TwoLevel, false, map[string]breaker.State{"db|insert": breaker.Open}},
		"an entry of a method":  {breaker.PerTarget, breaker.PerMethod, true, map[string]breaker.State{"db|insert": breaker.Open}},
		"and the other way":     {breaker.PerMethod, breaker.PerTarget, true, map[string]breaker.State{"db|insert": breaker.Open}},
		"the same, for control": {breaker.TwoLevel, breaker.TwoLevel, false, map[string]breaker.State{"db": breaker.Open, "db|insert": breaker.Open}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := func(s breaker.Scope) holdfast.Config {
					p := quick()
					if tc.entry {
						own := part
						own.Breaker = copied(own.Breaker)
						own.Breaker.Scope = s
						return holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{"insert": own}}
					}
					p.Breaker.Scope = s
					return holdfast.Config{Default: p}
				}
				k, err := holdfast.New(c(tc.from))
				require.NoError(t, err)
				open(t, k) // by way of "insert"
				require.NoError(t, k.Update(c(tc.to)))
				require.Equal(t, tc.want, statesOf(k))
				if !tc.entry && tc.to == breaker.PerMethod {
					_, err = do(t.Context(), k, read, answers(ok))
					require.NoError(t, err, "a new key is closed")
				}
			})
		})
	}
}

func copied[T any](p *T) *T { c := *p; return &c }

// C2: methods appear and vanish, layers change their level; state belongs to the
// level that sets the layer.
func TestC2_EntriesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		insert := call.Info{Target: "db", Method: "insert"}
		own := map[string]holdfast.Policy{"insert": {Breaker: p.Breaker}}
		k := newKit(t, p)
		open(t, k)
		update(t, k, p, own)
		_, err := do(t.Context(), k, insert, answers(ok))
		require.NoError(t, err, "it has a breaker of its own now")
		_, err = do(t.Context(), k, read, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen, "Default's went on")
		require.Equal(t, map[string]breaker.State{"db": breaker.Open, "db|insert": breaker.Closed}, statesOf(k))

		open(t, k) // insert's own
		update(t, k, p)
		_, err = do(t.Context(), k, insert, answers(ok))
		require.ErrorContains(t, err, "breaker: db is open", "it is back under Default's")
		require.Equal(t, map[string]breaker.State{"db": breaker.Open}, statesOf(k))
		update(t, k, p, own)
		_, err = do(t.Context(), k, insert, answers(ok))
		require.NoError(t, err, "an entry that comes back starts closed")

		// The same for a layer that is switched off.
		off := p
		off.Breaker = breaker.Off()
		update(t, k, off)
		_, err = do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
		require.Empty(t, statesOf(k))
		update(t, k, p)
		_, err = do(t.Context(), k, read, answers(ok))
		require.NoError(t, err)
		require.Equal(t, map[string]breaker.State{"db": breaker.Closed}, statesOf(k))
	})
}

// C2: a call under way ends under the policy that it began with; the next one
// begins with the new.
func TestC2_CallsInFlightEndUnderTheirOwnPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := map[string]int{}
		config := func(name string, p holdfast.Policy) holdfast.Config {
			p.Classify = func(_ context.Context, _ call.Info, res call.Result) call.Result {
				told["classify "+name]++
				return res
			}
			return holdfast.Config{Default: p, Hooks: holdfast.Hooks{
				Retry: func(context.Context, holdfast.Retry) { told["retry "+name]++ },
			}}
		}
		p := quick()
		k, err := holdfast.New(config("old", p))
		require.NoError(t, err)
		next := holdfast.Policy{Retry: retry.Off(), Breaker: breaker.Off(), Timeout: &timeout.Limits{Attempt: 5 * time.Millisecond}, Bulkhead: bulkhead.Off()}
		s := answers(func(context.Context) error {
			require.NoError(t, k.Update(config("new", next)))
			return errDown
		}, after(50*time.Millisecond, down)) // beyond the new limit
		_, err = do(t.Context(), k, read, s)
		require.ErrorIs(t, err, errDown)
		require.Equal(t, 3, s.hits)
		require.Equal(t, map[string]int{"classify old": 3, "retry old": 2}, told)

		clear(told)
		_, err = do(t.Context(), k, read, answers(silent))
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, map[string]int{"classify new": 1}, told)
	})
}

// Name is fixed; hooks that are left out stay, others take their place.
func TestC2_NameAndHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := 0
		hooks := func(step int) holdfast.Hooks {
			return holdfast.Hooks{Retry: func(context.Context, holdfast.Retry) { seen += step }}
		}
		k, err := holdfast.New(holdfast.Config{Name: "db", Default: quick(), Hooks: hooks(1)})
		require.NoError(t, err)
		require.EqualError(t, k.Update(holdfast.Config{Name: "other"}), `holdfast: Name = other: cannot change: the kit is "db"`)
		require.NoError(t, k.Update(holdfast.Config{Default: quick()}))
		require.Equal(t, "db", k.Name())
		_, _ = do(t.Context(), k, read, answers(down, ok))
		require.Equal(t, 1, seen)
		require.NoError(t, k.Update(holdfast.Config{Name: "db", Default: quick(), Hooks: hooks(10)}))
		_, _ = do(t.Context(), k, read, answers(down, ok))
		require.Equal(t, 11, seen)
	})
}

// B12: an update may be made from a hook, and a hook may be called because of an
// update, without a lock held; one that panics does not keep others from being
// told, nor the update from being made.
func TestB12_UpdatesAndHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k *holdfast.Kit
		var mu sync.Mutex
		var told []string
		p := quick()
		config := func(attempt time.Duration) holdfast.Config {
			p := p // hooks on several goroutines ask for one
			p.Timeout = &timeout.Limits{Attempt: attempt}
			return holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{"own": {Breaker: p.Breaker}}}
		}
		p.Retry = retry.Off()
		p.Breaker.ProbeTimeout = 50 * time.Millisecond
		p.Breaker.Hooks.Transition = func(m breaker.Transition) {
			mu.Lock()
			told = append(told, m.Key+" "+m.To.String())
			mu.Unlock()
			_ = maps.Collect(k.Breakers())
			if m.Reason == breaker.ReasonProbeExpired {
				panic("boom")
			}
			if err := k.Update(config(100 * time.Millisecond)); err != nil { // does not hang
				t.Error(err)
			}
		}
		k, err := holdfast.New(config(100 * time.Millisecond))
		require.NoError(t, err)
		infos := []call.Info{{Target: "a"}, {Target: "b"}, {Target: "c", Method: "own"}}
		for _, info := range infos {
			for range 5 {
				_, _ = do(t.Context(), k, info, answers(down))
			}
		}
		time.Sleep(time.Second)
		deaf := func(context.Context) error { time.Sleep(time.Minute); return nil }
		for _, info := range infos {
			go func() { _, _ = do(t.Context(), k, info, answers(deaf)) }()
		}
		time.Sleep(10 * time.Second) // the leases have run out, and nobody has looked
		mu.Lock()
		told = nil
		mu.Unlock()
		require.PanicsWithValue(t, "boom", func() { _ = k.Update(config(7 * time.Second)) })
		require.ElementsMatch(t, []string{"a open", "b open", "c|own open"}, told)
		e, err := k.Explain("any")
		require.NoError(t, err)
		require.Equal(t, 7*time.Second, e.Policy.Timeout.Attempt, "it was made all the same")
		time.Sleep(time.Minute)
	})
}

// T5: a probe's lease that comes from the limit of an attempt is held against
// ProbeLatency for each effective policy.
func TestT5_AProbesLatencyFitsItsAttempt(t *testing.T) {
	p := quick()
	p.Breaker.ProbeLatency = time.Second
	_, err := holdfast.New(holdfast.Config{Default: p})
	require.EqualError(t, err, "holdfast: Breaker.ProbeLatency = 1s: from Default, must not exceed Timeout.Attempt = 100ms, from Default, which ends the probe")
	p.Breaker.ProbeTimeout = time.Second
	_, err = holdfast.New(holdfast.Config{Default: holdfast.Policy{Breaker: &breaker.Config{}, Timeout: &timeout.Limits{Attempt: 15 * time.Second}}})
	require.EqualError(t, err, "holdfast: Breaker.Window.Span = 20s: from Default, must be at least twice Timeout.Attempt = 15s, from Default", "its default counts")
	k := newKit(t, p)
	p.Breaker.ProbeTimeout = 0
	require.Error(t, k.Update(holdfast.Config{Default: p}))

	// The 10 s of a breaker on its own are none of a kit's that has an Attempt.
	p = quick()
	p.Breaker.ProbeLatency, p.Breaker.Window = 20*time.Second, breaker.Window{Span: 3 * time.Minute}
	p.Timeout = &timeout.Limits{Attempt: time.Minute}
	newKit(t, p)
	for _, none := range []*timeout.Limits{timeout.Off(), {Total: time.Hour}} {
		p.Timeout = none
		_, err = holdfast.New(holdfast.Config{Default: p})
		require.EqualError(t, err, "holdfast: Breaker.ProbeLatency = 20s: from Default, must not exceed 10s, which ends a probe without ProbeTimeout and Timeout.Attempt")
	}
}

func TestExplainFollowsAnUpdate(t *testing.T) {
	k := newKit(t, quick())
	update(t, k, quick(), map[string]holdfast.Policy{"a": {Retry: retry.Off()}})
	e, err := k.Explain("a")
	require.NoError(t, err)
	require.Equal(t, `Methods["a"]`, e.From.Retry)
	update(t, k, holdfast.Policy{})
	e, err = k.Explain("a")
	require.NoError(t, err)
	require.Equal(t, "Standard", e.From.Retry)
	require.Empty(t, slices.Collect(maps.Keys(maps.Collect(k.Breakers()))))
}

// keysOf returns which of the keys that the test is about the table has.
func keysOf(t *holdfast.Table) (keys []string) {
	for _, key := range []string{"A", "B", "X", "a", "b", "x", "…a", "…b", "…x", "…X"} {
		if t.Method(key) != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Protocols that read names each in their own way have each their own table, before
// and after an update.
func TestC2_EachProtocolHasItsTable(t *testing.T) {
	shouts, whispers := namesAsTheyAre, namesAsTheyAre
	shouts.Name, shouts.Parse = "shouts", func(name string) (string, error) { return strings.ToUpper(name), nil }
	whispers.Name, whispers.Parse = "whispers", func(name string) (string, error) {
		if name == "" {
			return "", errors.New("is too quiet")
		}
		return "…" + name, nil
	}
	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"a": {}}})
	require.NoError(t, err)
	loud, err := k.Bind(shouts)
	require.NoError(t, err)
	quiet, err := k.Bind(whispers)
	require.NoError(t, err)
	_, err = do(t.Context(), k, call.Info{Method: "a"}, answers(ok))
	require.NoError(t, err)
	require.Equal(t, []string{"A"}, keysOf(loud.Table()))
	require.Equal(t, []string{"…a"}, keysOf(quiet.Table()))
	before := loud.Table()
	require.NoError(t, k.Update(holdfast.Config{Methods: map[string]holdfast.Policy{"b": {Retry: retry.Off()}}}))
	require.Equal(t, []string{"B"}, keysOf(loud.Table()))
	require.Equal(t, []string{"…b"}, keysOf(quiet.Table()))
	require.Equal(t, []string{"A"}, keysOf(before), "a call stays with the table that it found")
	e, err := k.Explain("b")
	require.NoError(t, err)
	require.Equal(t, `Methods["b"]`, e.From.Retry)

	err = k.Update(holdfast.Config{Methods: map[string]holdfast.Policy{"": {}, "x": {}, "X": {}}})
	require.ErrorContains(t, err, `Methods["x"]: names the same as Methods["X"]`)
	require.ErrorContains(t, err, `Methods[""]: is too quiet`)
	require.Equal(t, []string{"…b"}, keysOf(quiet.Table()))
}

// B7, C2: a probe's lease that follows Attempt follows it through an update, also
// where the breaker is the standard one and so not itself another.
func TestB7_AnUpdatedAttemptIsTheProbesLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := holdfast.Policy{Retry: retry.Off(), Timeout: &timeout.Limits{Attempt: time.Second}}
		k := newKit(t, p)
		for range 10 {
			_, _ = do(t.Context(), k, read, answers(down))
		}
		_, err := do(t.Context(), k, read, answers(ok))
		require.ErrorIs(t, err, breaker.ErrOpen)
		p.Timeout = &timeout.Limits{Attempt: 5 * time.Second}
		update(t, k, p)
		time.Sleep(time.Minute)
		_, err = do(t.Context(), k, read, answers(after(3*time.Second, ok)))
		require.NoError(t, err)
	})
}
