package main

import (
	"strconv"

	"github.com/cep21/circuit/v4"
	eapache "github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// memoryRows weigh a breaker for each of 100,000 keys. The bare figure is the
// registry of keys alone; the other libraries' breakers are held in the same one.
func memoryRows() []row {
	plus := func(bytes float64) goal {
		return goal{text: "the registry + " + number(bytes) + " B, 2 objects", times: 1, plus: bytes, allocs: most(2)}
	}
	slow := breaker.Config{Window: breaker.Window{Span: windowSpan}, FailureRate: 0.5, SlowCall: windowSpan}
	sony := func(s gobreaker.Settings) contender {
		return registered("gobreaker", func() *gobreaker.CircuitBreaker[any] { return gobreaker.NewCircuitBreaker[any](s) })
	}
	failsafe := func(configure func(circuitbreaker.Builder[any]) circuitbreaker.Builder[any]) contender {
		return registered("failsafe-go", func() circuitbreaker.CircuitBreaker[any] {
			return configure(circuitbreaker.NewBuilder[any]()).Build()
		})
	}
	return []row{
		{name: "memory, consecutive", goal: plus(96), memory: true, contenders: []contender{
			bareRegistry, grouped(consecutive), failsafe(failsafeConsecutive), sony(gobreakerConsecutive),
			registered("eapache", func() *eapache.Breaker { return eapache.New(5, 1, windowSpan) }),
			registered("mercari", mercariConsecutive), registered("cep21", func() *circuit.Circuit { return cep21(cep21Consecutive) }),
		}},
		{name: "memory, last 100", goal: plus(128), memory: true, contenders: []contender{
			bareRegistry, grouped(last100), failsafe(failsafeLast100),
		}},
		{name: "memory, 10 s window", goal: plus(192), memory: true, contenders: []contender{
			bareRegistry, grouped(window10s), failsafe(failsafeWindow), sony(gobreakerWindow), registered("rubyist", rubyistWindow),
			registered("cep21", func() *circuit.Circuit { return cep21(cep21Window) }),
		}},
		{name: "memory, 10 s window and slow calls", goal: plus(256), memory: true, contenders: []contender{
			bareRegistry, grouped(slow),
		}},
	}
}

// bareRegistry holds keys and no breakers.
var bareRegistry = registered("bare", func() *struct{} { return nil }).as(bare)

// registered is a contender whose breakers are held in holdfast's registry of keys.
func registered[T any](name string, newOne func() T) contender {
	return contender{name: name, setup: func() work {
		all := keyed.New(keyed.Options[T]{Max: 2 * objects, New: func(string) T { return newOne() }})
		next, now := keys(), mono.Now()
		return func(n int) any {
			for range n {
				all.For(next(), now)
			}
			return all
		}
	}}
}

// grouped is holdfast with a breaker for each key.
func grouped(c breaker.Config) contender {
	return contender{name: "holdfast", role: kit, setup: func() work {
		g, err := breaker.NewGroup(c, 2*objects)
		if err != nil {
			panic(err)
		}
		next := keys()
		return func(n int) any {
			for range n {
				g.For(next())
			}
			return g
		}
	}}
}

// keys returns a source of ever new keys. They are made before anything is
// weighed.
func keys() func() string {
	made := make([]string, objects+1)
	for i := range made {
		made[i] = strconv.Itoa(i)
	}
	return func() string {
		key := made[0]
		made = made[1:]
		return key
	}
}
