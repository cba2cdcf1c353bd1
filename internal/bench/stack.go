package main

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	failsafebulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	failsafetimeout "github.com/failsafe-go/failsafe-go/timeout"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	holdcall "github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// All stacks have 3 attempts, a breaker over 10 s at 50 % of at least 10 calls,
// 1000 in flight and, where one is asked for, a limit for an attempt. Where the
// caller's deadline is to be sooner, it is longer than any run takes.

const (
	attemptLimit = 5 * time.Second
	callersLimit = time.Hour
	laterLimit   = 2 * callersLimit
)

// situation is what a stack finds itself in.
type situation struct {
	ctx   func() context.Context // made once for a contender
	limit time.Duration          // of an attempt
}

var (
	ownLimit     = situation{context.Background, attemptLimit}
	callerSooner = situation{soonerContext, laterLimit}
)

func newKit(p holdfast.Policy) *holdfast.Kit {
	k, err := holdfast.New(holdfast.Config{Default: p})
	if err != nil {
		panic(err)
	}
	return k
}

// policy is the standard one with the rows' window.
func (s situation) policy() holdfast.Policy {
	c, limits := window10s, timeout.Limits{Total: s.limit}
	if 2*s.limit <= c.Window.Span {
		limits = timeout.Limits{Total: 3 * s.limit, Attempt: s.limit}
	}
	return holdfast.Policy{Breaker: &c, Timeout: &limits}
}

// once is the policy of calls that are never repeated.
func (s situation) once() holdfast.Policy {
	p := s.policy()
	p.Retry = retry.Off()
	return p
}

func stackDo(p holdfast.Policy, ctx func() context.Context, safety holdcall.Safety) contender {
	return contender{name: "holdfast", role: kit, setup: func() work {
		k, info, ctx := newKit(p), holdcall.Info{Target: "db", Method: "insert", Safety: safety}, ctx()
		return again(func(n int) {
			for range n {
				if _, err := holdfast.Do(ctx, k, info, func(context.Context) (int, error) { return 1, call() }); err != nil {
					panic(err)
				}
			}
		})
	}}
}

// doWithLimit is Do with no layer but the limit of an attempt.
func doWithLimit() contender {
	p := holdfast.Policy{Retry: retry.Off(), Breaker: breaker.Off(), Bulkhead: bulkhead.Off(), Timeout: &timeout.Limits{Attempt: attemptLimit}}
	return stackDo(p, context.Background, holdcall.Unsafe)
}

// soonerContext has a deadline before laterLimit. It lives as long as the process.
func soonerContext() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), callersLimit)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// byHand is the stack that one makes of the usual parts.
type byHand struct {
	breaker *gobreaker.CircuitBreaker[struct{}]
	permits *semaphore.Weighted
	limit   time.Duration
}

func newByHand(limit time.Duration) *byHand {
	return &byHand{gobreaker.NewCircuitBreaker[struct{}](gobreakerWindow), semaphore.NewWeighted(1000), limit}
}

func (s *byHand) do(ctx context.Context, attempt func(context.Context) error) error {
	var err error
	for n := range 3 {
		if n > 0 {
			select {
			case <-time.After(50 * time.Millisecond << n):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		_, err = s.breaker.Execute(func() (struct{}, error) {
			ctx, cancel := context.WithTimeout(ctx, s.limit)
			defer cancel()
			if err := s.permits.Acquire(ctx, 1); err != nil {
				return struct{}{}, err
			}
			defer s.permits.Release(1)
			return struct{}{}, attempt(ctx)
		})
		if err == nil || errors.Is(err, gobreaker.ErrOpenState) {
			return err
		}
	}
	return err
}

func (s situation) byHand() contender {
	return contender{name: "by hand", setup: func() work {
		stack, ctx := newByHand(s.limit), s.ctx()
		return again(func(n int) {
			for range n {
				if err := stack.do(ctx, func(context.Context) error { return call() }); err != nil {
					panic(err)
				}
			}
		})
	}}
}

// failsafeStack composes the policies as https://failsafe-go.dev/policies/ does.
func failsafeStack[R any](retries retrypolicy.Builder[R], limit time.Duration) []failsafe.Policy[R] {
	return []failsafe.Policy[R]{
		retries.WithBackoff(50*time.Millisecond, 5*time.Second).WithMaxAttempts(3).AbortOnErrors(circuitbreaker.ErrOpen).Build(),
		circuitbreaker.NewBuilder[R]().WithFailureRateThreshold(0.5, 10, windowSpan).Build(),
		failsafetimeout.New[R](limit),
		failsafebulkhead.New[R](1000),
	}
}

func (s situation) failsafe() contender {
	return contender{name: "failsafe-go", setup: func() work {
		e := failsafe.With(failsafeStack(retrypolicy.NewBuilder[int](), s.limit)...).WithContext(s.ctx())
		return again(func(n int) {
			for range n {
				if _, err := e.Get(func() (int, error) { return 1, call() }); err != nil {
					panic(err)
				}
			}
		})
	}}
}

func stackRows() []row {
	unlimited := ownLimit.once()
	unlimited.Timeout = timeout.Off()
	all := func(s situation, p holdfast.Policy, safety holdcall.Safety) []contender {
		return []contender{clocksAndAdds, stackDo(p, s.ctx, safety), s.byHand(), s.failsafe()}
	}
	return []row{
		{
			name: "stack, no limit, once", goal: goal{text: "160 ns", plus: 160, pace: 77, allocs: most(0)},
			contenders: []contender{clocksAndAdds, stackDo(unlimited, context.Background, holdcall.Unsafe)},
		},
		{
			name: "stack, caller's deadline sooner, once", goal: goal{text: "160 ns", plus: 160, pace: 77, allocs: most(0)},
			contenders: all(callerSooner, callerSooner.once(), holdcall.Unsafe),
		},
		{
			name:       "stack, caller's deadline sooner, may be repeated",
			contenders: all(callerSooner, callerSooner.policy(), holdcall.ReadOnly),
		},
		{
			name: "stack, own limit, once", goal: goal{text: "220 ns, 2 allocations", plus: 220, pace: 77, allocs: most(2)},
			contenders: all(ownLimit, ownLimit.once(), holdcall.Unsafe),
			note:       "with a standard context the goal is WithTimeout + 160 ns",
		},
		{
			name:       "stack, own limit, may be repeated",
			contenders: all(ownLimit, ownLimit.policy(), holdcall.ReadOnly),
		},
		{
			name: "stack, caller's deadline sooner, once, 2 goroutines", goroutines: 2, goal: goal{text: "300 ns", plus: 300, pace: 77},
			contenders: withSerialYardstick(all(callerSooner, callerSooner.once(), holdcall.Unsafe)),
		},
	}
}
