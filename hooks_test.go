package holdfast_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/logbook"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// ledger writes down what hooks are told.
type ledger struct{ logbook.Book }

type markKey struct{}

// hooks note everything. Contexts are followed by a mark that each hook adds.
func (l *ledger) hooks() holdfast.Hooks {
	mark := func(ctx context.Context) any { return ctx.Value(markKey{}) }
	return holdfast.Hooks{
		Call: func(ctx context.Context, info call.Info) (context.Context, func(holdfast.CallEnd)) {
			l.Note("call %s", info.Method)
			return context.WithValue(ctx, markKey{}, "call"), func(e holdfast.CallEnd) {
				l.Note("call over: %v after %d, error %v, fallback %v", e.Result.Class, e.Attempts, e.Err != nil, e.Fallback)
			}
		},
		Attempt: func(ctx context.Context, a call.Attempt) (context.Context, func(call.Result)) {
			l.Note("attempt %d in %v, %s, hedge %v, probe %v", a.Number, mark(ctx), a.Wire, a.Hedge, a.Probe)
			return context.WithValue(ctx, markKey{}, "attempt"), func(r call.Result) { l.Note("attempt %d over: %v", a.Number, r.Class) }
		},
		Returned: func(ctx context.Context, r holdfast.Returned) {
			l.Note("returned in %v: %v in %v", mark(ctx), r.Result.Class, r.Took)
		},
		Tried: func(ctx context.Context, t holdfast.Tried) {
			l.Note("tried %d: %v in %v", t.Number, t.Result.Class, t.Took)
		},
		Retry: func(ctx context.Context, r holdfast.Retry) {
			l.Note("retry %d in %v after %v", r.Attempt, mark(ctx), r.After.Class)
		},
		Refused: func(ctx context.Context, r holdfast.Refusal) {
			l.Note("refused %d in %v: %v", r.Attempt, mark(ctx), r.Cause)
		},
		Hedged:   func(_ context.Context, h holdfast.Hedge) { l.Note("hedge %d", h.Attempt) },
		HedgeWon: func(_ context.Context, h holdfast.Hedge) { l.Note("hedge %d won", h.Attempt) },
		Queued: func(_ context.Context, q holdfast.Queued) {
			l.Note("queued for %v, refused %v", q.Took, q.Err != nil)
		},
		Transition: func(t breaker.Transition) { l.Note("%s: %v to %v, %v", t.Key, t.From, t.To, t.Reason) },
		ProbeEnded: func(e breaker.ProbeEnd) { l.Note("%s: probe %v", e.Key, e.Outcome) },
	}
}

func watched(t *testing.T, p holdfast.Policy) (*holdfast.Kit, *ledger) {
	t.Helper()
	l := &ledger{}
	k, err := holdfast.New(holdfast.Config{Default: p, Hooks: l.hooks()})
	require.NoError(t, err)
	k.Count()
	return k, l
}

// TestO1: what a call does reaches plain hooks, in order and with its context.
func TestO1_HooksHearOfAllThatACallDoes(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		policy func(*holdfast.Policy)
		before func(*testing.T, *holdfast.Kit)
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		info   call.Info
		steps  []func(context.Context) error
		want   []string
		beside bool
	}{
		"good at once": {steps: []func(context.Context) error{ok}, want: []string{
			"call select", "attempt 1 in call, do, hedge false, probe false", "tried 1: ok in 0s", "attempt 1 over: ok",
			"returned in call: ok in 0s", "call over: ok after 1, error false, fallback false",
		}},
		"repeated": {steps: []func(context.Context) error{down, ok}, want: []string{
			"call select", "attempt 1 in call, do, hedge false, probe false", "tried 1: server_fault in 0s", "attempt 1 over: server_fault",
			"retry 2 in call after server_fault",
			"attempt 2 in call, do, hedge false, probe false", "tried 2: ok in 0s", "attempt 2 over: ok",
			"returned in call: ok in 10ms", "call over: ok after 2, error false, fallback false",
		}},
		"answered by a fallback": {
			policy: func(p *holdfast.Policy) {
				p.Retry, p.Fallback = retry.Off(), &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return "stale", nil }}
			},
			steps: []func(context.Context) error{down}, want: []string{
				"call select", "attempt 1 in call, do, hedge false, probe false", "tried 1: server_fault in 0s", "attempt 1 over: server_fault",
				"returned in call: server_fault in 0s", "call over: server_fault after 1, error false, fallback true",
			},
		},
		"refused by an open breaker": {before: open, steps: []func(context.Context) error{ok}, want: []string{
			"call select", "refused 1 in call: open", "returned in call: refused in 0s", "call over: refused after 0, error true, fallback false",
		}},
		"a probe fails": {
			before: func(t *testing.T, k *holdfast.Kit) { open(t, k); time.Sleep(time.Second) },
			steps:  []func(context.Context) error{down}, want: []string{
				"call select", "db: open to half_open, cooldown_over", "attempt 1 in call, do, hedge false, probe true",
				"tried 1: server_fault in 0s", "db: probe failed", "db: half_open to open, probe_failed", "attempt 1 over: server_fault",
				"returned in call: server_fault in 0s", "call over: server_fault after 1, error true, fallback false",
			},
		},
		"no repeat for want of a budget": {
			policy: func(p *holdfast.Policy) { p.Retry.Budget = retry.Budget{Cap: 1, Initial: 1, PerSecond: 1e-6} },
			steps:  []func(context.Context) error{down}, want: []string{
				"call select", "attempt 1 in call, do, hedge false, probe false", "tried 1: server_fault in 0s", "attempt 1 over: server_fault",
				"retry 2 in call after server_fault",
				"attempt 2 in call, do, hedge false, probe false", "tried 2: server_fault in 0s", "attempt 2 over: server_fault",
				"refused 3 in call: budget",
				"returned in call: server_fault in 10ms", "call over: server_fault after 2, error true, fallback false",
			},
		},
		"no repeat for want of time": {
			policy: func(p *holdfast.Policy) { p.Timeout = &timeout.Limits{Total: 5 * ms} },
			steps:  []func(context.Context) error{down}, want: []string{
				"call select", "attempt 1 in call, do, hedge false, probe false", "tried 1: server_fault in 0s", "attempt 1 over: server_fault",
				"refused 2 in call: no_time",
				"returned in call: server_fault in 0s", "call over: server_fault after 1, error true, fallback false",
			},
		},
		"no bulkhead's permit": {
			policy: func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1, MaxWait: 20 * ms} },
			before: occupy(40 * ms), steps: []func(context.Context) error{ok}, want: []string{
				"call select", "queued for 20ms, refused true", "refused 1 in call: bulkhead",
				"returned in call: refused in 20ms", "call over: refused after 0, error true, fallback false",
			},
		},
		"a permit in the end": {
			policy: func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1, MaxWait: 50 * ms} },
			before: occupy(40 * ms), steps: []func(context.Context) error{after(5*ms, ok)}, want: []string{
				"call select", "tried 1: ok in 40ms", "attempt 1 over: ok", "returned in call: ok in 40ms", "call over: ok after 1, error false, fallback false",
				"queued for 40ms, refused false",
				"attempt 1 in call, do, hedge false, probe false", "tried 1: ok in 5ms", "attempt 1 over: ok",
				"returned in call: ok in 45ms", "call over: ok after 1, error false, fallback false",
			}, beside: true,
		},
		"no room in the queue": {
			policy: func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1} },
			before: occupy(40 * ms), steps: []func(context.Context) error{ok}, want: []string{
				"call select", "refused 1 in call: bulkhead", "returned in call: refused in 0s", "call over: refused after 0, error true, fallback false",
			},
		},
		"less time than Floor": {
			policy: func(p *holdfast.Policy) { p.Timeout = &timeout.Limits{Floor: 50 * ms} },
			ctx:    within(20 * ms), steps: []func(context.Context) error{ok}, want: []string{
				"call select", "refused 1 in call: floor", "returned in call: refused in 0s", "call over: refused after 0, error true, fallback false",
			},
		},
		"expired before it began": {
			ctx: within(-ms), steps: []func(context.Context) error{ok}, want: []string{
				"call select", "refused 1 in call: expired", "returned in call: timed_out in 0s", "call over: timed_out after 0, error true, fallback false",
			},
		},
		"cancelled before it began": {
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx, cancel
			}, steps: []func(context.Context) error{ok}, want: []string{
				"call select", "returned in call: canceled in 0s", "call over: canceled after 0, error true, fallback false",
			},
		},
		"a hedge wins": {
			policy: func(p *holdfast.Policy) { p.Retry.Hedge = retry.Hedge{Delay: 10 * ms} },
			steps:  []func(context.Context) error{after(50*ms, ok), after(5*ms, ok)}, want: []string{
				"call select", "attempt 1 in call, do, hedge false, probe false", "hedge 2",
				"attempt 2 in call, do, hedge true, probe false", "tried 2: ok in 5ms", "attempt 2 over: ok",
				"tried 1: canceled in 15ms", "attempt 1 over: canceled", "hedge 2 won",
				"returned in call: ok in 15ms", "call over: ok after 2, error false, fallback false",
			}, beside: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quick()
				if tc.policy != nil {
					tc.policy(&p)
				}
				k, l := watched(t, p)
				if tc.before != nil {
					tc.before(t, k)
				}
				l.Take()
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tc.ctx != nil {
					ctx, cancel = tc.ctx(ctx)
				}
				defer cancel()
				_, _ = do(ctx, k, read, answers(tc.steps...))
				synctest.Wait()
				got := l.Take()
				if tc.beside { // there are several goroutines, so the order is not one
					require.ElementsMatch(t, tc.want, got)
					return
				}
				require.Equal(t, tc.want, got)
			})
		})
	}
}

func within(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

// occupy lets another call have a permit for a while.
func occupy(d time.Duration) func(*testing.T, *holdfast.Kit) {
	return func(t *testing.T, k *holdfast.Kit) {
		go func() { _, _ = do(t.Context(), k, read, answers(after(d, ok))) }()
		synctest.Wait()
	}
}

// TestO1, item "a hook that panics": whichever it is, the call gives everything
// back, the panic goes on, and who was told of a begin is told of the end.
func TestO1_APanickingHookLeavesNothing(t *testing.T) {
	boom := func() { panic("boom") }
	for name, tc := range map[string]struct {
		set   func(*holdfast.Hooks)
		steps []func(context.Context) error
		hedge bool
	}{
		"call": {set: func(h *holdfast.Hooks) {
			h.Call = func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) { boom(); return nil, nil }
		}},
		"call's end": {set: func(h *holdfast.Hooks) {
			h.Call = func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
				return nil, func(holdfast.CallEnd) { boom() }
			}
		}},
		"attempt": {set: func(h *holdfast.Hooks) {
			h.Attempt = func(context.Context, call.Attempt) (context.Context, func(call.Result)) { boom(); return nil, nil }
		}},
		"attempt's end": {set: func(h *holdfast.Hooks) {
			h.Attempt = func(context.Context, call.Attempt) (context.Context, func(call.Result)) {
				return nil, func(call.Result) { boom() }
			}
		}},
		"returned": {set: func(h *holdfast.Hooks) { h.Returned = func(context.Context, holdfast.Returned) { boom() } }},
		"tried":    {set: func(h *holdfast.Hooks) { h.Tried = func(context.Context, holdfast.Tried) { boom() } }},
		"retry": {set: func(h *holdfast.Hooks) { h.Retry = func(context.Context, holdfast.Retry) { boom() } },
			steps: []func(context.Context) error{down, ok}},
		"refused": {set: func(h *holdfast.Hooks) { h.Refused = func(context.Context, holdfast.Refusal) { boom() } },
			steps: []func(context.Context) error{down}},
		"hedged": {set: func(h *holdfast.Hooks) { h.Hedged = func(context.Context, holdfast.Hedge) { boom() } },
			steps: []func(context.Context) error{after(time.Second, ok)}, hedge: true},
		"hedge won": {set: func(h *holdfast.Hooks) { h.HedgeWon = func(context.Context, holdfast.Hedge) { boom() } },
			steps: []func(context.Context) error{after(time.Second, ok), ok}, hedge: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := quick()
				p.Bulkhead = &bulkhead.Config{Limit: 2}
				p.Timeout = timeout.Off()
				p.Retry.Budget = retry.Budget{Cap: 1, Initial: 1, PerSecond: 1e-6}
				if tc.hedge {
					p.Retry.Hedge = retry.Hedge{Delay: 10 * time.Millisecond}
				}
				var hooks holdfast.Hooks
				tc.set(&hooks)
				k, err := holdfast.New(holdfast.Config{Default: p})
				require.NoError(t, err)
				var calls, attempts atomic.Int32
				stop := k.Attach(holdfast.Hooks{
					Call: func(ctx context.Context, _ call.Info) (context.Context, func(holdfast.CallEnd)) {
						calls.Add(1)
						return ctx, func(holdfast.CallEnd) { calls.Add(-1) }
					},
					Attempt: func(ctx context.Context, _ call.Attempt) (context.Context, func(call.Result)) {
						attempts.Add(1)
						return ctx, func(call.Result) { attempts.Add(-1) }
					},
				})
				detach := k.Attach(hooks)
				steps := tc.steps
				if steps == nil {
					steps = []func(context.Context) error{ok}
				}
				require.PanicsWithValue(t, "boom", func() { _, _ = do(t.Context(), k, read, answers(steps...)) })
				synctest.Wait()
				require.Zero(t, calls.Load(), "a call that has begun has ended")
				require.Zero(t, attempts.Load(), "an attempt that has begun has ended")
				for _, b := range k.Bulkheads() {
					require.Zero(t, b.InUse())
				}
				for _, b := range k.Breakers() {
					if name == "attempt" {
						require.Zero(t, b.Counts().Results, "the dependency was not touched")
					}
				}
				detach()
				stop()
				_, err = do(t.Context(), k, read, answers(ok))
				require.NoError(t, err)
			})
		})
	}
}

// A panic in the queue's hook, which waits for a permit, gives that back.
func TestO1_APanickingQueueHookLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1}
		k := newKit(t, p)
		defer k.Attach(holdfast.Hooks{Queued: func(context.Context, holdfast.Queued) { panic("boom") }})()
		occupy(10*time.Millisecond)(t, k)
		require.PanicsWithValue(t, "boom", func() { _, _ = do(t.Context(), k, read, answers(ok)) })
		for _, b := range k.Bulkheads() {
			require.Zero(t, b.InUse())
		}
	})
}

// Hooks attached later stand within the earlier ones; detached, they are no longer
// told. The user's hooks in breaker.Config go on beside the kit's.
func TestO1_HooksAreAttachedAndDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		named := func(name string) holdfast.Hooks {
			return holdfast.Hooks{
				Call: func(ctx context.Context, _ call.Info) (context.Context, func(holdfast.CallEnd)) {
					lines = append(lines, name+" begins")
					return nil, func(holdfast.CallEnd) { lines = append(lines, name+" ends") }
				},
				Returned:   func(context.Context, holdfast.Returned) { lines = append(lines, name+" returned") },
				Transition: func(breaker.Transition) { lines = append(lines, name+" transition") },
			}
		}
		p := quick()
		p.Breaker.Hooks.Transition = func(breaker.Transition) { lines = append(lines, "the breaker's own transition") }
		k, err := holdfast.New(holdfast.Config{Default: p, Hooks: named("config")})
		require.NoError(t, err)
		first := k.Attach(named("first"))
		second := k.Attach(named("second"))
		_, _ = do(t.Context(), k, read, answers(ok))
		require.Equal(t, []string{
			"config begins", "first begins", "second begins", "config returned", "first returned", "second returned",
			"second ends", "first ends", "config ends",
		}, lines)
		first()
		first() // again does nothing
		lines = nil
		for _, b := range k.Breakers() {
			b.ForceOpen("test")
		}
		require.Equal(t, []string{"the breaker's own transition", "config transition", "second transition"}, lines)
		second()
		lines = nil
		_, _ = do(t.Context(), k, read, answers(ok))
		require.Equal(t, []string{"config begins", "config returned", "config ends"}, lines)
	})
}

// The tally says what the hooks say, whatever happens.
func TestO1_TheTallyAgreesWithTheHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Breaker = &breaker.Config{Consecutive: 4, Cooldown: 200 * time.Millisecond}
		p.Bulkhead = &bulkhead.Config{Limit: 2, Queue: 1, MaxWait: 5 * time.Millisecond}
		p.Retry.Budget = retry.Budget{Cap: 10, PerSecond: 20}
		hedged := p
		hedged.Retry = &retry.Policy{Hedge: retry.Hedge{Delay: 3 * time.Millisecond}, Budget: p.Retry.Budget}
		k, err := holdfast.New(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{"hedged": hedged}})
		require.NoError(t, err)
		k.Count()
		type key struct {
			method string
			class  call.Class
		}
		var mu sync.Mutex
		calls, attempts, refused, denied, retries, hedges, won := map[key]uint64{}, map[key]uint64{}, map[string]uint64{}, map[string]uint64{}, 0, 0, 0
		locked := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		defer k.Attach(holdfast.Hooks{
			Returned: func(_ context.Context, r holdfast.Returned) {
				locked(func() { calls[key{r.Info.Method, r.Result.Class}]++ })
			},
			Tried: func(_ context.Context, r holdfast.Tried) {
				locked(func() { attempts[key{r.Info.Method, r.Result.Class}]++ })
			},
			Refused: func(_ context.Context, r holdfast.Refusal) {
				by := refused
				if r.Attempt > 1 {
					by = denied
				}
				locked(func() { by[r.Info.Method+" "+r.Cause.String()]++ })
			},
			Retry:    func(context.Context, holdfast.Retry) { locked(func() { retries++ }) },
			Hedged:   func(context.Context, holdfast.Hedge) { locked(func() { hedges++ }) },
			HedgeWon: func(context.Context, holdfast.Hedge) { locked(func() { won++ }) },
		})()
		var wg sync.WaitGroup
		for w := range 6 {
			wg.Go(func() {
				info := read
				if w%2 == 0 {
					info.Method = "hedged"
				}
				for n := range 200 {
					step := []func(context.Context) error{after(2*time.Millisecond, ok), down, after(8*time.Millisecond, ok), after(time.Millisecond, down), ok}[(n*7+w)%5]
					_, _ = do(t.Context(), k, info, answers(step, ok))
					time.Sleep(time.Duration(n%11) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		gotCalls, gotAttempts, gotRefused, gotDenied := map[key]uint64{}, map[key]uint64{}, map[string]uint64{}, map[string]uint64{}
		gotRetries, gotHedges, gotWon := 0, 0, 0
		put := func(m map[key]uint64, at key, n uint64) {
			if n > 0 {
				m[at] = n
			}
		}
		for name, tally := range k.Tallies() {
			for c := call.OK; c.Valid(); c++ {
				put(gotCalls, key{name, c}, tally.Calls(c))
				put(gotAttempts, key{name, c}, tally.Attempts(c))
			}
			for _, c := range holdfast.Causes() {
				if n := tally.Refusals(c); n > 0 {
					gotRefused[name+" "+c.String()] = n
				}
				if n := tally.Denied(c); n > 0 {
					gotDenied[name+" "+c.String()] = n
				}
			}
			gotRetries += int(tally.Retries())
			gotHedges += int(tally.Hedges())
			gotWon += int(tally.HedgesWon())
		}
		require.Equal(t, calls, gotCalls)
		require.Equal(t, attempts, gotAttempts)
		require.Equal(t, refused, gotRefused)
		require.Equal(t, denied, gotDenied)
		require.Equal(t, []int{retries, hedges, won}, []int{gotRetries, gotHedges, gotWon})
		require.NotZero(t, retries*hedges*won, "all of it happened: %d, %d, %d", retries, hedges, won)
		require.NotEmpty(t, denied)
		require.NotEmpty(t, refused)
	})
}
