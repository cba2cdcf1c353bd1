package main

import (
	"context"
	"time"

	avast "github.com/avast/retry-go/v4"
	"github.com/cenkalti/backoff/v5"
	eapachedeadline "github.com/eapache/go-resiliency/deadline"
	eapacheretry "github.com/eapache/go-resiliency/retrier"
	eapachesemaphore "github.com/eapache/go-resiliency/semaphore"
	"github.com/failsafe-go/failsafe-go"
	failsafebulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	failsafetimeout "github.com/failsafe-go/failsafe-go/timeout"
	sethvargo "github.com/sethvargo/go-retry"
	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	holdcall "github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func layerRows() []row {
	rows := retryRows()
	rows = append(rows, bulkheadRows()...)
	return append(rows, limitRows()...)
}

// try repeats call with func() error, and never has to.
func try(name string, once func() error) contender {
	return contender{name: name, setup: func() work {
		return again(func(n int) {
			for range n {
				if err := once(); err != nil {
					panic(err)
				}
			}
		})
	}}
}

func retryRows() []row {
	ctx := context.Background()
	base := 50 * time.Millisecond
	// https://failsafe-go.dev/retry/
	fs := failsafe.With[any](retrypolicy.NewBuilder[any]().WithBackoff(base, 5*time.Second).WithMaxAttempts(3).Build())
	// https://github.com/eapache/go-resiliency/tree/main/retrier
	ea := eapacheretry.New(eapacheretry.ExponentialBackoff(2, base), nil)
	peers := []contender{
		try("failsafe-go", func() error { return fs.Run(call) }),
		try("eapache", func() error { return ea.Run(call) }),
		// https://pkg.go.dev/github.com/cenkalti/backoff/v5#example-Retry; a
		// BackOff has state, so each call needs its own.
		try("cenkalti", func() error {
			_, err := backoff.Retry(ctx, func() (int, error) { return 1, call() }, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxTries(3))
			return err
		}),
		// https://pkg.go.dev/github.com/sethvargo/go-retry#example-Do-Simple
		try("sethvargo", func() error {
			return sethvargo.Do(ctx, sethvargo.WithMaxRetries(2, sethvargo.NewExponential(base)), func(context.Context) error { return call() })
		}),
		// https://pkg.go.dev/github.com/avast/retry-go/v4#Do
		try("avast", func() error { return avast.Do(call, avast.Attempts(3), avast.Delay(base), avast.Context(ctx)) }),
	}
	layer := func(budget bool) contender {
		return contender{name: "holdfast", role: kit, setup: func() work {
			var bucket *retry.Bucket
			if budget {
				bucket = retry.NewBucketAt(retry.Budget{}, mono.Now())
			}
			p, now := &retry.Policy{}, mono.Now()
			return again(func(n int) {
				for range n {
					res := holdcall.Result{Class: holdcall.OK, Err: call()}
					if res.Class == holdcall.OK {
						bucket.EarnAt(now) // nil earns nothing
						continue
					}
					p.NextAt(retry.Input{Attempt: 1, Result: res, Left: retry.NoLimit, Bucket: bucket, U: 1}, now)
				}
			})
		}}
	}
	return []row{
		{
			name: "retry, first try succeeds", goal: goal{text: "bare + 5 ns", times: 1, plus: 5, pace: 14, allocs: most(0)},
			contenders: append([]contender{bareCall, oneMutex, layer(false)}, peers...),
			note:       "the layer's share of a call: the kit has the loop and the clock; the stack's rows have them too",
		},
		{
			name: "retry, first try succeeds, budget", goal: goal{text: "bare + 8 ns", times: 1, plus: 8, pace: 14, allocs: most(0)},
			contenders: []contender{bareCall, oneMutex, layer(true)},
		},
		{
			name:       "retry alone by Do, first try succeeds, budget",
			contenders: append([]contender{bareCall, stackDo(retryAlone, context.Background, holdcall.ReadOnly)}, peers...),
		},
	}
}

// retryAlone has no layer but retries.
var retryAlone = holdfast.Policy{
	Retry:   &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 50 * time.Millisecond, Cap: 5 * time.Second}},
	Breaker: breaker.Off(), Bulkhead: bulkhead.Off(), Timeout: timeout.Off(),
}

func bulkheadRows() []row {
	ctx := context.Background()
	contenders := []contender{
		oneMutex,
		{name: "holdfast", role: kit, setup: func() work {
			b, err := bulkhead.New("bench", bulkhead.Config{Limit: 1000, Queue: 10})
			if err != nil {
				panic(err)
			}
			return again(func(n int) {
				for range n {
					p, err := b.Acquire(ctx)
					if err != nil {
						panic(err)
					}
					p.Release()
				}
			})
		}},
		// https://pkg.go.dev/golang.org/x/sync/semaphore
		{name: "x/sync", setup: func() work {
			s := semaphore.NewWeighted(1000)
			return again(func(n int) {
				for range n {
					if err := s.Acquire(ctx, 1); err != nil {
						panic(err)
					}
					s.Release(1)
				}
			})
		}},
		// https://failsafe-go.dev/bulkhead/ under "Standalone Usage"
		{name: "failsafe-go", setup: func() work {
			b := failsafebulkhead.New[any](1000)
			return again(func(n int) {
				for range n {
					if err := b.AcquirePermit(ctx); err != nil {
						panic(err)
					}
					b.ReleasePermit()
				}
			})
		}},
		// https://github.com/eapache/go-resiliency/tree/main/semaphore
		{name: "eapache", setup: func() work {
			s := eapachesemaphore.New(1000, time.Second)
			return again(func(n int) {
				for range n {
					if err := s.Acquire(); err != nil {
						panic(err)
					}
					s.Release()
				}
			})
		}},
	}
	return []row{
		{name: "bulkhead, free permit", goal: goal{text: "20 ns", plus: 20, pace: 14, allocs: most(0)}, contenders: contenders},
		{name: "bulkhead, free permit, 2 goroutines", goroutines: 2, goal: goal{text: "45 ns", plus: 45, pace: 14}, contenders: withSerialYardstick(contenders)},
	}
}

// withSerialYardstick keeps the yardstick off the row's goroutines: a mutex that
// two want is no measure of anything.
func withSerialYardstick(contenders []contender) []contender {
	all := append([]contender(nil), contenders...)
	for i := range all {
		if all[i].role == yardstick {
			all[i].goroutines = 1
		}
	}
	return all
}

func limitRows() []row {
	bounded := func(sooner bool) contender {
		return contender{name: "holdfast", role: kit, setup: func() work {
			in := ownLimit
			if sooner {
				in = callerSooner
			}
			b, ctx := deadline.Bound{Limit: "Attempt", Whole: in.limit, Left: in.limit}, in.ctx()
			return again(func(n int) {
				for range n {
					now, callers := mono.Now(), retry.NoLimit
					if deadline, ok := ctx.Deadline(); ok {
						callers = mono.Of(deadline).Sub(now)
					}
					bounded, own := b.Context(ctx, now, callers, nil)
					if !sooner && bounded.Done() == nil {
						panic("it can end")
					}
					_ = call()
					own.Release()
				}
			})
		}}
	}
	soonerByHand := contender{name: "WithTimeout", setup: func() work {
		ctx := soonerContext()
		return again(func(n int) {
			for range n {
				_, cancel := context.WithTimeout(ctx, laterLimit)
				_ = call()
				cancel()
			}
		})
	}}
	byFailsafe := func(in situation) contender {
		return contender{name: "failsafe-go", setup: func() work {
			e := failsafe.With[any](failsafetimeout.New[any](in.limit)) // https://failsafe-go.dev/timeout/
			e = e.WithContext(in.ctx())
			return again(func(n int) {
				for range n {
					if err := e.Run(call); err != nil {
						panic(err)
					}
				}
			})
		}}
	}
	byEapache := contender{name: "eapache", setup: func() work {
		d := eapachedeadline.New(attemptLimit) // https://github.com/eapache/go-resiliency/tree/main/deadline
		return again(func(n int) {
			for range n {
				if err := d.Run(func(<-chan struct{}) error { return call() }); err != nil {
					panic(err)
				}
			}
		})
	}}
	return []row{
		{
			name: "attempt limit, caller's deadline sooner", goal: goal{text: "75 ns", plus: 75, pace: 32, allocs: most(0)},
			contenders: []contender{oneClock, bounded(true), soonerByHand, byFailsafe(callerSooner)},
		},
		{
			name: "attempt limit, the callee asks Done", goal: goal{text: "1.05 x WithTimeout, 1 allocation more", times: 1.05, allocs: most(1)},
			contenders: []contender{{name: "WithTimeout", role: bare, setup: withTimeout(true)}, bounded(false), byFailsafe(ownLimit), byEapache},
		},
		{
			name: "attempt limit, Do, the callee never asks", goal: goal{text: "150 ns", plus: 150, pace: 61, allocs: most(1)},
			contenders: []contender{twoClocks, doWithLimit(), {name: "WithTimeout", setup: withTimeout(false)}, byFailsafe(ownLimit), byEapache},
		},
	}
}
