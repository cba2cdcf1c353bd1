package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/afex/hystrix-go/hystrix"
	eapache "github.com/eapache/go-resiliency/breaker"
	"github.com/eapache/go-resiliency/deadline"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	failsafetimeout "github.com/failsafe-go/failsafe-go/timeout"
	"github.com/sony/gobreaker/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// All circuits open after 5 failures, let a probe pass after the cooldown and
// close with its success. Where a call has a limit it is the same for all. A call
// that its caller cancelled is no failure, where a library can be told so.
const (
	failures = 5
	cooldown = 100 * time.Millisecond
	limit    = 200 * time.Millisecond
)

// circuit is a circuit breaker as its users call it.
type circuit struct {
	call  func(ctx context.Context, fn func(context.Context) error) error
	state func() string
	open  error // what a refused call returns
}

// settings is what a row asks for beside the common.
type settings struct {
	limited  bool   // calls have a limit
	onChange func() // called when the state has changed
}

// library makes circuits.
type library struct {
	name    string
	hooks   bool // it tells of a change of state
	circuit func(settings) circuit
}

var libraries = []library{
	{"holdfast", true, holdfastCircuit},
	{"failsafe-go", true, failsafeCircuit},
	{"gobreaker", true, gobreakerCircuit},
	{"eapache", false, eapacheCircuit},
	{"hystrix-go", false, hystrixCircuit},
	{"rubyist", false, rubyistCircuit},
	{"mercari", true, mercariCircuit},
	{"cep21", true, cep21Circuit},
	{"sentinel", true, sentinelCircuit},
}

func holdfastCircuit(s settings) circuit {
	c := breaker.Config{Consecutive: failures, Cooldown: cooldown, Probes: 1, ProbeSuccesses: 1}
	p := holdfast.Policy{Breaker: &c, Retry: retry.Off(), Bulkhead: bulkhead.Off(), Timeout: timeout.Off()}
	if s.limited {
		p.Timeout = &timeout.Limits{Attempt: limit} // a probe's lease too
	}
	if s.onChange != nil {
		c.Hooks.Transition = func(breaker.Transition) { s.onChange() }
	}
	kit, err := holdfast.New(holdfast.Config{Default: p})
	if err != nil {
		panic(err)
	}
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			_, err := holdfast.Do(ctx, kit, call.Info{Target: "db", Method: "select"}, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
			return err
		},
		state: func() string {
			for _, b := range kit.Breakers() {
				return strings.ReplaceAll(b.State().String(), "_", "-")
			}
			return "closed"
		},
		open: breaker.ErrOpen,
	}
}

// failsafeCircuit: https://failsafe-go.dev/circuit-breaker/ and
// https://failsafe-go.dev/timeout/ inside it, as https://failsafe-go.dev/policies/
// orders them.
func failsafeCircuit(s settings) circuit {
	builder := circuitbreaker.NewBuilder[any]().WithFailureThreshold(failures).WithDelay(cooldown).WithSuccessThreshold(1).
		HandleIf(func(_ any, err error) bool { return err != nil && !errors.Is(err, context.Canceled) })
	if s.onChange != nil {
		builder = builder.OnStateChanged(func(circuitbreaker.StateChangedEvent) { s.onChange() })
	}
	b := builder.Build()
	policies := []failsafe.Policy[any]{b}
	if s.limited {
		policies = append(policies, failsafetimeout.New[any](limit))
	}
	e := failsafe.With(policies...)
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			return e.WithContext(ctx).RunWithExecution(func(x failsafe.Execution[any]) error { return fn(x.Context()) })
		},
		state: func() string { return b.State().String() },
		open:  circuitbreaker.ErrOpen,
	}
}

// gobreakerCircuit: https://github.com/sony/gobreaker#usage, with a context's
// deadline for the limit.
func gobreakerCircuit(s settings) circuit {
	set := gobreaker.Settings{
		MaxRequests: 1, Timeout: cooldown,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) },
	}
	if s.onChange != nil {
		set.OnStateChange = func(string, gobreaker.State, gobreaker.State) { s.onChange() }
	}
	b := gobreaker.NewCircuitBreaker[any](set)
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			_, err := b.Execute(func() (any, error) { return nil, withLimit(ctx, s, fn) })
			if errors.Is(err, gobreaker.ErrTooManyRequests) {
				err = gobreaker.ErrOpenState // half-open, and the probe is out
			}
			return err
		},
		state: func() string { return b.State().String() },
		open:  gobreaker.ErrOpenState,
	}
}

// eapacheCircuit: https://github.com/eapache/go-resiliency, the packages breaker
// and deadline.
func eapacheCircuit(s settings) circuit {
	b, d := eapache.New(failures, 1, cooldown), deadline.New(limit)
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			return b.Run(func() error {
				if s.limited {
					return d.Run(func(<-chan struct{}) error { return fn(ctx) })
				}
				return fn(ctx)
			})
		},
		state: func() string {
			return map[eapache.State]string{eapache.Closed: "closed", eapache.Open: "open", eapache.HalfOpen: "half-open"}[b.GetState()]
		},
		open: eapache.ErrBreakerOpen,
	}
}

// hystrixCircuit: https://github.com/afex/hystrix-go#configure-settings. A command
// has a limit in any case; its breaker counts on a goroutine of its own.
func hystrixCircuit(s settings) circuit {
	most := 60 * time.Second
	if s.limited {
		most = limit
	}
	hystrix.ConfigureCommand("db", hystrix.CommandConfig{
		Timeout: int(most / time.Millisecond), MaxConcurrentRequests: 1000,
		RequestVolumeThreshold: failures, SleepWindow: int(cooldown / time.Millisecond), ErrorPercentThreshold: 50,
	})
	settle := func() { time.Sleep(20 * time.Millisecond) } // its own goroutine counts
	return circuit{
		call: func(ctx context.Context, fn func(context.Context) error) error {
			err := hystrix.DoC(ctx, "db", fn, nil)
			settle()
			return err
		},
		state: func() string {
			b, _, err := hystrix.GetCircuit("db")
			if err != nil {
				return err.Error()
			}
			if b.IsOpen() {
				return "open"
			}
			return "closed"
		},
		open: hystrix.ErrCircuitOpen,
	}
}

// withLimit calls fn with a context that has the common limit, if the row asks for it.
func withLimit(ctx context.Context, s settings, fn func(context.Context) error) error {
	if !s.limited {
		return fn(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return fn(ctx)
}

var errDown = errors.New("down")

func failing(context.Context) error { return errDown }

func succeeding(context.Context) error { return nil }

// flight is a call under way, held until it is told how to end.
type flight struct {
	end    chan<- error
	ended  <-chan error
	reason error // why it was refused; nil if it was admitted
}

// begin begins a call that ends when it is told to, whatever its context says.
func (c circuit) begin(ctx context.Context) flight {
	admitted, end, ended := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- c.call(ctx, func(context.Context) error {
			close(admitted)
			return <-end
		})
	}()
	select {
	case <-admitted:
		return flight{end: end, ended: ended}
	case err := <-ended:
		return flight{reason: err}
	}
}

// finish ends a call under way and waits until its caller has the result.
func (f flight) finish(err error) {
	f.end <- err
	<-f.ended
}

// trip makes the circuit open.
func (c circuit) trip() error {
	for range failures {
		_ = c.call(context.Background(), failing)
	}
	if s := c.state(); s != "open" {
		return fmt.Errorf("%d failures leave it %s", failures, s)
	}
	return nil
}

// probe waits for the cooldown's end and begins the call that probes.
func (c circuit) probe(ctx context.Context) (flight, error) {
	for range 100 {
		if f := c.begin(ctx); f.reason == nil {
			return f, nil
		}
		time.Sleep(cooldown / 10)
	}
	return flight{}, errors.New("no probe was admitted")
}

// next tells when the next call is admitted, and what becomes of it.
func (c circuit) next(patience time.Duration) string {
	begin := time.Now()
	for time.Since(begin) < patience {
		admitted := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- c.call(context.Background(), func(context.Context) error { close(admitted); return nil })
		}()
		select {
		case <-admitted:
			return fmt.Sprintf("the next call was admitted after %v", time.Since(begin).Round(10*time.Millisecond))
		case <-ended:
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Sprintf("every call was refused for %v, then given up", patience)
}
