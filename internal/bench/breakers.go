package main

import (
	"context"
	"errors"
	"time"

	"github.com/afex/hystrix-go/hystrix"
	"github.com/cep21/circuit/v4"
	eapache "github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	rubyist "github.com/rubyist/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/internal/mono"
)

var errDown = errors.New("the dependency is down")

// often fails one time in this many; 0 is never.
type often int

func (o often) result(i int) error {
	if o > 0 && i%int(o) == 0 {
		return errDown
	}
	return call()
}

func holdfastBreaker(c breaker.Config) *breaker.Breaker {
	b, err := breaker.New("bench", c)
	if err != nil {
		panic(err)
	}
	for range 200 { // a count window is full
		t, _ := b.Allow()
		t.Done(breaker.Outcome{Verdict: breaker.Success})
	}
	return b
}

func holdfastClosed(c breaker.Config, fails often) contender {
	return contender{name: "holdfast", role: kit, setup: func() work {
		b := holdfastBreaker(c)
		return again(func(n int) {
			for i := range n {
				t, err := b.Allow()
				if err != nil {
					panic(err)
				}
				v := breaker.Success
				if fails.result(i+1) != nil {
					v = breaker.Failure
				}
				t.Done(breaker.Outcome{Verdict: v})
			}
		})
	}}
}

// holdfastHandedIn is how a kit uses a breaker: it has read the clock already.
func holdfastHandedIn(c breaker.Config) contender {
	return contender{name: "holdfast", role: kit, setup: func() work {
		b := holdfastBreaker(c)
		return again(func(n int) {
			now := mono.Now()
			for range n {
				t, err := b.AllowAt(now)
				if err != nil {
					panic(err)
				}
				_ = call()
				t.DoneAt(breaker.Outcome{Verdict: breaker.Success}, now)
			}
		})
	}}
}

// failsafeClosed uses the permits of failsafe-go, its cheapest way:
// https://failsafe-go.dev/circuit-breaker/ under "Standalone Usage".
func failsafeClosed(configure func(circuitbreaker.Builder[any]) circuitbreaker.Builder[any], fails often) contender {
	return contender{name: "failsafe-go", setup: func() work {
		b := configure(circuitbreaker.NewBuilder[any]()).Build()
		return again(func(n int) {
			for i := range n {
				if !b.TryAcquirePermit() {
					panic("open")
				}
				if fails.result(i+1) != nil {
					b.RecordFailure()
				} else {
					b.RecordSuccess()
				}
			}
		})
	}}
}

// gobreakerClosed: https://github.com/sony/gobreaker#usage
func gobreakerClosed(s gobreaker.Settings, fails often) contender {
	return contender{name: "gobreaker", setup: func() work {
		b := gobreaker.NewCircuitBreaker[any](s)
		return again(func(n int) {
			for i := range n {
				_, err := b.Execute(func() (any, error) { return nil, fails.result(i + 1) })
				if err != nil && err != errDown {
					panic(err)
				}
			}
		})
	}}
}

// eapacheClosed: https://github.com/eapache/go-resiliency/tree/main/breaker
var eapacheClosed = contender{name: "eapache", setup: func() work {
	b := eapache.New(5, 1, 10*time.Second)
	return again(func(n int) {
		for range n {
			if err := b.Run(call); err != nil {
				panic(err)
			}
		}
	})
}}

// rubyistClosed: https://github.com/rubyist/circuitbreaker#quick-start; Ready,
// Success and Fail are the cheapest way.
func rubyistClosed(make func() *rubyist.Breaker, fails often) contender {
	return contender{name: "rubyist", setup: func() work {
		b := make()
		return again(func(n int) {
			for i := range n {
				if !b.Ready() {
					panic("open")
				}
				if fails.result(i+1) != nil {
					b.Fail()
				} else {
					b.Success()
				}
			}
		})
	}}
}

// mercariClosed: https://github.com/mercari/go-circuitbreaker#synopsis; Ready, Success
// and Fail are the cheapest way.
func mercariClosed(fails often) contender {
	return contender{name: "mercari", setup: func() work {
		b := mercariConsecutive()
		return again(func(n int) {
			for i := range n {
				if !b.Ready() {
					panic("open")
				}
				if fails.result(i+1) != nil {
					b.Fail()
				} else {
					b.Success()
				}
			}
		})
	}}
}

// cep21Closed: https://github.com/cep21/circuit#usage, without its limits of time and
// number.
func cep21Closed(general circuit.GeneralConfig, fails often) contender {
	return contender{name: "cep21", setup: func() work {
		c := cep21(general)
		return again(func(n int) {
			ctx := context.Background()
			for i := range n {
				err := c.Run(ctx, func(context.Context) error { return fails.result(i + 1) })
				if err != nil && err != errDown {
					panic(err)
				}
			}
		})
	}}
}

func cep21(general circuit.GeneralConfig) *circuit.Circuit {
	return circuit.NewCircuitFromConfig("bench", circuit.Config{
		General: general, Execution: circuit.ExecutionConfig{Timeout: -1, MaxConcurrentRequests: -1},
	})
}

// hystrixClosed: https://github.com/afex/hystrix-go#how-to-use. A command is a
// breaker, a timeout and a pool in one, on a goroutine of its own. The pool is large
// because a permit comes back only some time after the call.
func hystrixClosed(fails often) contender {
	return contender{name: "hystrix-go", setup: func() work {
		hystrix.ConfigureCommand("bench", hystrix.CommandConfig{Timeout: 10_000, MaxConcurrentRequests: 100_000, ErrorPercentThreshold: 50})
		return again(func(n int) {
			for i := range n {
				err := hystrix.DoC(context.Background(), "bench", func(context.Context) error { return fails.result(i + 1) }, nil)
				if err != nil && err != errDown {
					panic(err)
				}
			}
		})
	}}
}
