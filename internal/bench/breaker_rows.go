package main

import (
	"context"
	"time"

	"github.com/cep21/circuit/v4"
	cep21hystrix "github.com/cep21/circuit/v4/closers/hystrix"
	"github.com/cep21/circuit/v4/closers/simplelogic"
	eapache "github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	mercari "github.com/mercari/go-circuitbreaker"
	rubyist "github.com/rubyist/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/holdfast-go/holdfast/breaker"
)

// The rules, as each library says them.

const windowSpan = 10 * time.Second

var (
	consecutive = breaker.Config{Consecutive: 5}
	last100     = breaker.Config{Window: breaker.Window{Calls: 100}, FailureRate: 0.5}
	window10s   = breaker.Config{Window: breaker.Window{Span: windowSpan}, FailureRate: 0.5}
	slowToo     = breaker.Config{Window: breaker.Window{Span: windowSpan}, FailureRate: 0.5, SlowCall: time.Second, SlowRate: 0.5, Stall: breaker.Stall{After: time.Second}}
)

func failsafeConsecutive(b circuitbreaker.Builder[any]) circuitbreaker.Builder[any] {
	return b.WithFailureThreshold(5)
}

func failsafeLast100(b circuitbreaker.Builder[any]) circuitbreaker.Builder[any] {
	return b.WithFailureThresholdRatio(50, 100)
}

func failsafeWindow(b circuitbreaker.Builder[any]) circuitbreaker.Builder[any] {
	return b.WithFailureRateThreshold(0.5, 10, windowSpan)
}

var (
	gobreakerConsecutive = gobreaker.Settings{ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 }}
	gobreakerWindow      = gobreaker.Settings{Interval: windowSpan, BucketPeriod: time.Second, ReadyToTrip: func(c gobreaker.Counts) bool {
		return c.Requests >= 10 && 2*c.TotalFailures >= c.Requests
	}}
)

func rubyistConsecutive() *rubyist.Breaker { return rubyist.NewConsecutiveBreaker(5) }

func rubyistWindow() *rubyist.Breaker { return rubyist.NewRateBreaker(0.5, 10) } // 10 s in 10 buckets

// mercari's window begins anew after its span, which is no sliding one: it has none.
func mercariConsecutive() *mercari.CircuitBreaker {
	return mercari.New(mercari.WithTripFunc(mercari.NewTripFuncConsecutiveFailures(5)), mercari.WithCounterResetInterval(-1))
}

var (
	cep21Consecutive = circuit.GeneralConfig{
		ClosedToOpenFactory: simplelogic.ConsecutiveErrOpenerFactory(simplelogic.ConfigConsecutiveErrOpener{ErrorThreshold: 5}),
		OpenToClosedFactory: cep21hystrix.CloserFactory(cep21hystrix.ConfigureCloser{}),
	}
	cep21Window = circuit.GeneralConfig{
		ClosedToOpenFactory: cep21hystrix.OpenerFactory(cep21hystrix.ConfigureOpener{
			ErrorThresholdPercentage: 50, RequestVolumeThreshold: 10, RollingDuration: windowSpan, NumBuckets: 10,
		}),
		OpenToClosedFactory: cep21hystrix.CloserFactory(cep21hystrix.ConfigureCloser{}),
	}
)

// serially is a contender on one goroutine, whatever the row has.
func serially(c contender) contender {
	c.name, c.role, c.goroutines = c.name+", serial", bare, 1
	return c
}

const weaker = "eapache's rule is weaker: errors without a pause between them, and a success does not end a row"

const noStall = "sentinel sees slow calls once they have returned, and no dependency that is silent; its two rules are two breakers"

func breakerRows() []row {
	rows := []row{
		{
			name: "breaker closed, consecutive", note: weaker,
			goal:       goal{text: "bare + 6 ns", times: 1, plus: 6, pace: 14, allocs: most(0)},
			contenders: []contender{bareCall, oneMutex, holdfastClosed(consecutive, 0), failsafeClosed(failsafeConsecutive, 0), gobreakerClosed(gobreakerConsecutive, 0), eapacheClosed, rubyistClosed(rubyistConsecutive, 0), mercariClosed(0), cep21Closed(cep21Consecutive, 0)},
		},
		{
			name:       "breaker closed, last 100",
			goal:       goal{text: "12 ns", plus: 12, pace: 14, allocs: most(0)},
			contenders: []contender{bareCall, oneMutex, holdfastClosed(last100, 0), failsafeClosed(failsafeLast100, 0)},
		},
		{
			name:       "breaker closed, 10 s window",
			goal:       goal{text: "1.35 x a clock reading and an add", times: 1.35, allocs: most(0)},
			contenders: []contender{clockAndAdd.as(bare), holdfastClosed(window10s, 0), failsafeClosed(failsafeWindow, 0), gobreakerClosed(gobreakerWindow, 0), rubyistClosed(rubyistWindow, 0), hystrixClosed(0), cep21Closed(cep21Window, 0), sentinelClosed(true, 0, sentinelWindow)},
		},
		{
			name:       "breaker closed, 10 s window, time handed in",
			goal:       goal{text: "12 ns", plus: 12, pace: 14, allocs: most(0)},
			contenders: []contender{bareCall, oneMutex, holdfastHandedIn(window10s)},
		},
		{
			name: "breaker closed, slow calls and stall", note: noStall,
			goal:       goal{text: "95 ns", plus: 95, pace: 61, allocs: most(0)},
			contenders: []contender{bareCall, twoClocks, holdfastClosed(slowToo, 0), sentinelClosed(true, 0, sentinelWindow, sentinelSlow), sentinelClosed(false, 0, sentinelWindow, sentinelSlow)},
		},
		{
			name:       "breaker mixed, consecutive",
			contenders: []contender{bareCall, holdfastClosed(consecutive, 10), failsafeClosed(failsafeConsecutive, 10), gobreakerClosed(gobreakerConsecutive, 10), rubyistClosed(rubyistConsecutive, 10), mercariClosed(10), cep21Closed(cep21Consecutive, 10)},
		},
		{
			name:       "breaker mixed, last 100",
			goal:       goal{text: "20 ns", plus: 20, pace: 14, allocs: most(0)},
			contenders: []contender{bareCall, oneMutex, holdfastClosed(last100, 10), failsafeClosed(failsafeLast100, 10)},
		},
		{
			name:       "breaker mixed, 10 s window",
			contenders: []contender{bareCall, holdfastClosed(window10s, 10), failsafeClosed(failsafeWindow, 10), gobreakerClosed(gobreakerWindow, 10), rubyistClosed(rubyistWindow, 10), hystrixClosed(10), cep21Closed(cep21Window, 10), sentinelClosed(true, 10, sentinelWindow)},
		},
	}
	for _, n := range []int{2, 8} {
		rows = append(rows, parallelRows(n)...)
	}
	rows = append(rows, openRows()...)
	return rows
}

func parallelRows(n int) []row {
	suffix, pick := map[int]string{2: ", 2 goroutines", 8: ", 8 goroutines"}[n], func(two, eight float64) float64 {
		if n == 2 {
			return two
		}
		return eight
	}
	k := holdfastClosed(consecutive, 0)
	return []row{
		{
			name: "breaker closed, consecutive" + suffix, goroutines: n,
			goal:       goal{text: "0.65 x its serial", times: 0.65},
			contenders: []contender{serially(k), k, failsafeClosed(failsafeConsecutive, 0), gobreakerClosed(gobreakerConsecutive, 0), eapacheClosed, rubyistClosed(rubyistConsecutive, 0), mercariClosed(0), cep21Closed(cep21Consecutive, 0)},
		},
		{
			name: "breaker closed, last 100" + suffix, goroutines: n,
			goal:       goal{text: "6 ns", plus: 6, pace: 14},
			contenders: withSerialYardstick([]contender{oneMutex, holdfastClosed(last100, 0), failsafeClosed(failsafeLast100, 0)}),
		},
		{
			name: "breaker closed, 10 s window" + suffix, goroutines: n,
			goal:       goal{text: map[int]string{2: "35 ns", 8: "40 ns"}[n], plus: pick(35, 40), pace: 18.6},
			contenders: []contender{clockAndAdd, holdfastClosed(window10s, 0), failsafeClosed(failsafeWindow, 0), gobreakerClosed(gobreakerWindow, 0), rubyistClosed(rubyistWindow, 0), cep21Closed(cep21Window, 0), sentinelClosed(true, 0, sentinelWindow)},
		},
		{
			name: "breaker closed, slow calls and stall" + suffix, goroutines: n, note: noStall,
			contenders: []contender{twoClocks.as(bare), holdfastClosed(slowToo, 0), sentinelClosed(true, 0, sentinelWindow, sentinelSlow)},
		},
		{
			name: "breaker mixed, 10 s window" + suffix, goroutines: n,
			contenders: []contender{clockAndAdd.as(bare), holdfastClosed(window10s, 10), failsafeClosed(failsafeWindow, 10), gobreakerClosed(gobreakerWindow, 10), rubyistClosed(rubyistWindow, 10), cep21Closed(cep21Window, 10), sentinelClosed(true, 10, sentinelWindow)},
		},
	}
}

const long = time.Hour

func openRows() []row {
	refuses := []contender{
		oneClock,
		{name: "holdfast", role: kit, setup: func() work {
			b := holdfastBreaker(breaker.Config{Consecutive: 1, Cooldown: long, MaxCooldown: 2 * long})
			t, _ := b.Allow()
			t.Done(breaker.Outcome{Verdict: breaker.Failure})
			return again(func(n int) {
				for range n {
					if _, err := b.Allow(); err == nil {
						panic("admitted")
					}
				}
			})
		}},
		{name: "failsafe-go", setup: func() work {
			b := circuitbreaker.NewBuilder[any]().WithDelay(long).Build()
			b.Open()
			return again(func(n int) {
				for range n {
					if b.TryAcquirePermit() {
						panic("admitted")
					}
				}
			})
		}},
		{name: "gobreaker", setup: func() work {
			b := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Timeout: long, ReadyToTrip: func(gobreaker.Counts) bool { return true }})
			_, _ = b.Execute(func() (any, error) { return nil, errDown })
			return again(func(n int) {
				for range n {
					if _, err := b.Execute(func() (any, error) { return nil, call() }); err != gobreaker.ErrOpenState {
						panic("admitted")
					}
				}
			})
		}},
		{name: "eapache", setup: func() work {
			b := eapache.New(1, 1, long)
			_ = b.Run(func() error { return errDown })
			return again(func(n int) {
				for range n {
					if b.Run(call) != eapache.ErrBreakerOpen {
						panic("admitted")
					}
				}
			})
		}},
		{name: "mercari", setup: func() work {
			b := mercari.New(mercari.WithTripFunc(mercari.NewTripFuncConsecutiveFailures(1)), mercari.WithOpenTimeout(long))
			b.Fail()
			return again(func(n int) {
				for range n {
					if b.Ready() {
						panic("admitted")
					}
				}
			})
		}},
		{name: "cep21", setup: func() work {
			c := cep21(circuit.GeneralConfig{
				OpenToClosedFactory: cep21hystrix.CloserFactory(cep21hystrix.ConfigureCloser{SleepWindow: long}),
			})
			c.OpenCircuit(context.Background())
			return again(func(n int) {
				ctx := context.Background()
				for range n {
					if c.Run(ctx, func(context.Context) error { panic("admitted") }) == nil {
						panic("no error")
					}
				}
			})
		}},
		sentinelOpen,
	}
	return []row{
		{name: "breaker open, refusal", goal: goal{text: "41 ns", plus: 41, pace: 30.6, allocs: most(0)}, contenders: refuses,
			note: "eapache's and mercari's breakers become half-open by a timer and read no clock; they tell nothing of when"},
		{name: "breaker open, refusal, 2 goroutines", goroutines: 2, goal: goal{text: "21 ns", plus: 21, pace: 15.3}, contenders: refuses},
	}
}
