package sim

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// logged keeps the moments at which a dependency was called.
type logged struct {
	Dependency
	sent *[]time.Duration
}

func (d logged) Answer(sent time.Duration) Answer {
	*d.sent = append(*d.sent, sent)
	return d.Dependency.Answer(sent)
}

// course is all that can be seen of a run: what it did to whom, and when.
type course struct {
	figures Figures
	ends    [][4]int // by millisecond
	sent    []time.Duration
}

func ends(t *Trace) [][4]int {
	var ends [][4]int
	for _, s := range t.Steps {
		ends = append(ends, s.Ends)
	}
	for len(ends) > 0 && ends[len(ends)-1] == [4]int{} {
		ends = ends[:len(ends)-1]
	}
	return ends
}

// simulated takes a client through the setup with the simulator.
func simulated(t *testing.T, seed uint64, s Setup, c Client) (k course) {
	make := s.Dependency
	s.Dependency = func(chance Chance) Dependency { return logged{make(chance), &k.sent} }
	trace := &Trace{Every: time.Millisecond}
	var err error
	k.figures, err = Run(seed, s, c, trace)
	require.NoError(t, err)
	k.ends = ends(trace)
	return k
}

// real takes the kit itself through the setup, with a goroutine for each request.
// It runs in a bubble.
func real(t *testing.T, seed uint64, s Setup, c Client) (k course) {
	var (
		mu      sync.Mutex
		calls   sync.WaitGroup
		began   = time.Now()
		elapsed = func() time.Duration { return time.Since(began) }
		trace   = &Trace{Every: time.Millisecond}
		f       = &k.figures
	)
	kits := make([]*holdfast.Kit, max(c.Kits, 1))
	for i := range kits {
		p := whole(c.Policy)
		if i > 0 {
			p = whole(holdfast.Policy{Retry: c.Policy.Retry})
		} else if !p.Breaker.IsOff() {
			config := *p.Breaker
			config.Hooks.Transition = func(tr breaker.Transition) {
				mu.Lock()
				defer mu.Unlock()
				f.Transitions = append(f.Transitions, Transition{elapsed(), tr.From, tr.To, tr.Reason})
			}
			p.Breaker = &config
		}
		var err error
		kits[i], err = holdfast.New(holdfast.Config{Default: p})
		require.NoError(t, err)
	}
	dependency := logged{s.Dependency(stream(seed, dependencyStream).Float64), &k.sent}
	attempt := func(ctx context.Context) (struct{}, error) {
		mu.Lock()
		f.Attempts++
		if elapsed() >= s.From && elapsed() < s.To {
			f.Downstream++
		}
		answer := dependency.Answer(elapsed())
		mu.Unlock()
		if answer.Silent {
			answer.After = time.Hour
		}
		select {
		case <-ctx.Done():
			return struct{}{}, ctx.Err()
		case <-time.After(answer.After):
		}
		if answer.Failed {
			return struct{}{}, errServer
		}
		return struct{}{}, nil
	}
	info := call.Info{Target: key, Method: "A", Safety: cmp.Or(c.Policy.Safety, call.ReadOnly)}
	for i := range kits {
		inner := attempt
		attempt = func(ctx context.Context) (struct{}, error) { return holdfast.Do(ctx, kits[i], info, inner) }
	}

	threads, err := bulkhead.New("threads", bulkhead.Config{Limit: s.Threads})
	require.NoError(t, err)
	for _, a := range Arrivals(seed, s) {
		time.Sleep(a.At - elapsed())
		inOutage := a.At >= s.From && a.At < s.To
		var thread bulkhead.Pair
		free := thread.Try(threads, nil)
		mu.Lock()
		f.ThreadsMost = max(f.ThreadsMost, threads.InUse())
		tell := func(e End, n *int) {
			*n++
			trace.step(elapsed()).Ends[e]++
		}
		switch {
		case a.IsA:
			f.A++
			if inOutage {
				f.AInOutage++
			}
			if !free {
				tell(Rejected, &f.ARejected)
			}
		case inOutage:
			f.BArrived++
			if free {
				f.BServed++
			}
		}
		mu.Unlock()
		if !free {
			continue
		}
		if !a.IsA {
			time.AfterFunc(s.BTakes, thread.Release)
			continue
		}
		calls.Go(func() {
			_, err := attempt(context.Background())
			thread.Release()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				tell(OK, &f.AOK)
			case errors.Is(err, breaker.ErrOpen) || errors.Is(err, bulkhead.ErrFull):
				tell(FastFail, &f.AFastFail)
			default:
				tell(Failed, &f.AFailed)
			}
		})
		synctest.Wait()
	}
	calls.Wait()
	k.ends = ends(trace)
	return k
}

// The simulator asks the layers in the order in which the kit does: on the same
// requests both make the same decisions at the same moments.
func TestTheKitItselfDecidesAlike(t *testing.T) {
	steady := retry.Backoff{Base: 30 * time.Millisecond, Jitter: retry.NoJitter}
	exact := func(c breaker.Config) *breaker.Config {
		c.Jitter = breaker.NoJitter
		return &c
	}
	counting := exact(breaker.Config{Window: breaker.Window{Calls: 20}, Probes: 3, Cooldown: 2 * time.Second, CooldownFactor: 1.5})
	silent := Silent{Latency: 50 * time.Millisecond, From: 3 * time.Second, To: 14 * time.Second}
	faulty := Silent{Latency: 50 * time.Millisecond, From: time.Hour, To: time.Hour}
	limits := &timeout.Limits{Total: 3 * time.Second, Attempt: 2 * time.Second}
	for _, tc := range []struct {
		name       string
		dependency Dependency
		client     Client
		opens      bool
	}{
		{name: "timeout alone", dependency: silent, client: Client{Policy: holdfast.Policy{Timeout: limits}}},
		{"breaker", silent, Client{Policy: holdfast.Policy{Timeout: limits, Breaker: counting}}, true},
		{"retry inside", silent, Client{Policy: holdfast.Policy{
			Timeout: limits, Breaker: counting, Retry: &retry.Policy{Backoff: retry.NoWait(), Budget: retry.NoBudget()},
		}}, true},
		{"retry with waits and a budget", silent, Client{Policy: holdfast.Policy{
			Timeout: limits, Breaker: exact(breaker.Config{Window: breaker.Window{Span: 5 * time.Second}}), Retry: &retry.Policy{Backoff: steady},
		}}, true},
		{"unsafe", silent, Client{Policy: holdfast.Policy{
			Safety: call.Unsafe, Timeout: limits, Breaker: counting, Retry: &retry.Policy{},
		}}, true},
		{"stall and ramp", silent, Client{Policy: holdfast.Policy{
			Timeout: limits, Retry: &retry.Policy{Backoff: steady},
			Breaker: exact(breaker.Config{
				Stall: breaker.Stall{After: 200 * time.Millisecond, Calls: 10}, Cooldown: time.Second, CooldownFactor: 1,
				ProbeTimeout: 300 * time.Millisecond, RampUp: 3 * time.Second,
			}),
		}}, true},
		{"bulkhead", silent, Client{Policy: holdfast.Policy{
			Timeout: limits, Breaker: counting, Bulkhead: &bulkhead.Config{Limit: 10}, Retry: &retry.Policy{Backoff: steady},
		}}, true},
		{"bulkhead with a queue", silent, Client{Policy: holdfast.Policy{
			Timeout: limits, Breaker: counting, Bulkhead: &bulkhead.Config{Limit: 4, Queue: 8, MaxWait: 70 * time.Millisecond},
		}}, true},
		{"a queue longer than a slow call", silent, Client{Policy: holdfast.Policy{
			Timeout: limits, Bulkhead: &bulkhead.Config{Limit: 3, Queue: 30, MaxWait: 300 * time.Millisecond},
			Breaker: exact(breaker.Config{Window: breaker.Window{Calls: 20}, SlowCall: 90 * time.Millisecond, FailureRate: 0.2, Cooldown: time.Second}),
		}}, true},
		{"a budget that runs out", errorsFrom(faulty), Client{Policy: holdfast.Policy{
			Timeout: limits, Breaker: counting,
			Retry: &retry.Policy{
				MaxAttempts: 20, Budget: retry.Budget{PerSecond: 0.5, Share: 0.01},
				Backoff: retry.Backoff{Base: 300 * time.Millisecond, Jitter: retry.NoJitter},
			},
		}}, true},
		{"queue to the attempt's limit", silent, Client{Policy: holdfast.Policy{
			Timeout:  &timeout.Limits{Attempt: 400 * time.Millisecond},
			Bulkhead: &bulkhead.Config{Limit: 4, Queue: 8}, Retry: &retry.Policy{Backoff: steady},
		}}, false},
		{"bulkhead of two levels, and stall", silent, Client{Policy: holdfast.Policy{
			Timeout: limits, Bulkhead: &bulkhead.Config{Limit: 8, MethodLimit: 5, Queue: 8, MaxWait: 70 * time.Millisecond, Scope: bulkhead.TwoLevel},
			Breaker: exact(breaker.Config{Stall: breaker.Stall{After: 250 * time.Millisecond, Calls: 4}, Cooldown: time.Second}),
		}}, true},
		{"adaptive bulkhead", silent, Client{Policy: holdfast.Policy{
			Timeout: limits, Bulkhead: &bulkhead.Config{Limit: 20, Adaptive: bulkhead.Adaptive{Min: 2}},
		}}, false},
		{"errors", errorsFrom(faulty), Client{Policy: holdfast.Policy{
			Timeout: limits, Breaker: counting, Retry: &retry.Policy{Backoff: steady},
		}}, true},
		{"five kits", errorsFrom(faulty), Client{Kits: 5, Policy: holdfast.Policy{
			Retry: &retry.Policy{Backoff: retry.NoWait(), EvenNested: true},
		}}, false},
		{"five kits that heed each other", errorsFrom(faulty), Client{Kits: 5, Policy: holdfast.Policy{
			Timeout: limits, Breaker: counting, Retry: &retry.Policy{Backoff: steady},
		}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(3) {
				var want, got course
				s := Setup{
					Threads: 40, A: 50, B: 50, BTakes: 5 * time.Millisecond, Lasts: 20 * time.Second,
					From: 3 * time.Second, To: 14 * time.Second,
					Dependency: func(Chance) Dependency { return tc.dependency },
				}
				synctest.Test(t, func(t *testing.T) {
					s.Start = mono.Now()
					want = real(t, seed, s, tc.client)
				})
				got = simulated(t, seed, s, tc.client)
				got.figures.Probes, got.figures.ProbesAfter = 0, 0 // the kit does not tell
				require.Equal(t, want.figures, got.figures)
				require.Equal(t, want.sent, got.sent)
				require.Equal(t, want.ends, got.ends)
				require.Equal(t, tc.opens, len(got.figures.Transitions) > 2)
				require.Greater(t, got.figures.AOK, 100)
				require.Positive(t, got.figures.A-got.figures.AOK)
			}
		})
	}
}

// errorsFrom answers every other second with errors, early.
type faults struct{ Dependency }

func errorsFrom(d Dependency) Dependency { return faults{d} }

func (d faults) Answer(sent time.Duration) Answer {
	if sent/time.Second%2 == 1 {
		return Answer{After: 7 * time.Millisecond, Failed: true}
	}
	return d.Dependency.Answer(sent)
}
