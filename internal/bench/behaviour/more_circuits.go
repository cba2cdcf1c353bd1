package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/cenk/backoff"
	cep21 "github.com/cep21/circuit/v4"
	cep21hystrix "github.com/cep21/circuit/v4/closers/hystrix"
	"github.com/cep21/circuit/v4/closers/simplelogic"
	mercari "github.com/mercari/go-circuitbreaker"
	rubyist "github.com/rubyist/circuitbreaker"

	"github.com/holdfast-go/holdfast/internal/bench/quiet"
)

// mercariCircuit: https://github.com/mercari/go-circuitbreaker#synopsis. What its
// caller cancelled it does not count by itself.
func mercariCircuit(s settings) circuit {
	options := []mercari.BreakerOption{
		mercari.WithTripFunc(mercari.NewTripFuncConsecutiveFailures(failures)), mercari.WithCounterResetInterval(-1),
		mercari.WithOpenTimeout(cooldown), mercari.WithHalfOpenMaxSuccesses(1), mercari.WithFailOnContextDeadline(true),
	}
	if s.onChange != nil {
		options = append(options, mercari.WithOnStateChangeHookFn(func(mercari.State, mercari.State) { s.onChange() }))
	}
	b := mercari.New(options...)
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			_, err := b.Do(ctx, func() (any, error) { return nil, withLimit(ctx, s, fn) })
			return err
		},
		state: func() string { return string(b.State()) },
		open:  mercari.ErrOpen,
	}
}

var errCep21Open = errors.New("circuit is open")

// cep21Circuit: https://github.com/cep21/circuit#usage. It does not tell half-open from
// open. What its caller cancelled it does not count by itself.
func cep21Circuit(s settings) circuit {
	c := cep21.Config{
		General: cep21.GeneralConfig{
			ClosedToOpenFactory: simplelogic.ConsecutiveErrOpenerFactory(simplelogic.ConfigConsecutiveErrOpener{ErrorThreshold: failures}),
			OpenToClosedFactory: cep21hystrix.CloserFactory(cep21hystrix.ConfigureCloser{
				SleepWindow: cooldown, HalfOpenAttempts: 1, RequiredConcurrentSuccessful: 1,
			}),
		},
		Execution: cep21.ExecutionConfig{Timeout: -1, MaxConcurrentRequests: -1},
	}
	if s.limited {
		c.Execution.Timeout = limit
	}
	if s.onChange != nil {
		c.Metrics.Circuit = cep21.MetricsCollection{cep21Changes(s.onChange)}
	}
	b := cep21.NewCircuitFromConfig("db", c)
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			err := b.Run(ctx, fn)
			if refused := cep21.Error(nil); errors.As(err, &refused) && refused.CircuitOpen() {
				return errCep21Open
			}
			return err
		},
		state: func() string {
			if b.IsOpen() {
				return "open"
			}
			return "closed"
		},
		open: errCep21Open,
	}
}

type cep21Changes func()

func (told cep21Changes) Opened(context.Context, time.Time) { told() }
func (told cep21Changes) Closed(context.Context, time.Time) { told() }

// rubyistCircuit: https://github.com/rubyist/circuitbreaker#quick-start. It does not
// tell half-open from open, and of changes only through a channel.
func rubyistCircuit(s settings) circuit {
	b := rubyist.NewBreakerWithOptions(&rubyist.Options{
		ShouldTrip: rubyist.ConsecutiveTripFunc(failures), BackOff: backoff.NewConstantBackOff(cooldown),
	})
	most := time.Duration(0)
	if s.limited {
		most = limit
	}
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			return b.CallContext(ctx, func() error { return fn(ctx) }, most)
		},
		state: func() string {
			if b.Tripped() {
				return "open"
			}
			return "closed"
		},
		open: rubyist.ErrBreakerOpen,
	}
}

var errSentinelOpen = errors.New("blocked by its circuit breaker")

// sentinelCircuit: https://sentinelguard.io/en-us/docs/golang/circuit-breaking.html. Its
// rule counts failures within a span, not in a row, and it has no limit for a call.
func sentinelCircuit(s settings) circuit {
	states := &sentinelStates{told: s.onChange}
	circuitbreaker.RegisterStateChangeListeners(states)
	quiet.Sentinel(circuitbreaker.Rule{
		Resource: "db", Strategy: circuitbreaker.ErrorCount, Threshold: failures, MinRequestAmount: failures,
		StatIntervalMs: 60_000, StatSlidingWindowBucketCount: 10, RetryTimeoutMs: uint32(cooldown.Milliseconds()),
	})
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			e, refused := sentinel.Entry("db")
			if refused != nil {
				return errSentinelOpen
			}
			defer e.Exit()
			err := withLimit(ctx, s, fn)
			if err != nil && !errors.Is(err, context.Canceled) {
				sentinel.TraceError(e, err)
			}
			return err
		},
		state: states.String,
		open:  errSentinelOpen,
	}
}

// sentinelStates keeps the state, which Sentinel tells nobody but listeners.
type sentinelStates struct {
	now  atomic.Int32
	told func()
}

func (s *sentinelStates) String() string {
	return map[circuitbreaker.State]string{
		circuitbreaker.Closed: "closed", circuitbreaker.Open: "open", circuitbreaker.HalfOpen: "half-open",
	}[circuitbreaker.State(s.now.Load())]
}

func (s *sentinelStates) moved(to circuitbreaker.State) {
	s.now.Store(int32(to))
	if s.told != nil {
		s.told()
	}
}

func (s *sentinelStates) OnTransformToClosed(circuitbreaker.State, circuitbreaker.Rule) {
	s.moved(circuitbreaker.Closed)
}

func (s *sentinelStates) OnTransformToOpen(circuitbreaker.State, circuitbreaker.Rule, any) {
	s.moved(circuitbreaker.Open)
}

func (s *sentinelStates) OnTransformToHalfOpen(circuitbreaker.State, circuitbreaker.Rule) {
	s.moved(circuitbreaker.HalfOpen)
}
