package breaker_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

func ExampleBreaker() {
	b, err := breaker.New("payments", breaker.Config{Consecutive: 3, Cooldown: time.Minute})
	if err != nil {
		panic(err)
	}
	call := func(work func() error) error {
		ticket, err := b.Allow()
		if err != nil {
			return err
		}
		err = work()
		verdict := breaker.Success
		if err != nil {
			verdict = breaker.Failure
		}
		ticket.Done(breaker.Outcome{Verdict: verdict})
		return err
	}
	for range 4 {
		fmt.Println(call(func() error { return errors.New("connection refused") }))
	}
	// Output:
	// connection refused
	// connection refused
	// connection refused
	// breaker: payments is open
}

func ExampleNew() {
	_, err := breaker.New("payments", breaker.Config{FailureRate: 50, Cooldown: -time.Second})
	fmt.Println(err)
	// Output:
	// breaker: bad configuration
	// 	FailureRate = 50: must be a share, 0 < r <= 1 (did you mean 0.5?)
	// 	Cooldown = -1s: must not be negative
}

func ExampleOpenError() {
	b, _ := breaker.New("payments", breaker.Config{Consecutive: 1, Cooldown: time.Minute, Jitter: breaker.NoJitter})
	ticket, _ := b.Allow()
	ticket.Done(breaker.Outcome{Verdict: breaker.Failure, RetryAfter: 2 * time.Minute})

	_, err := b.Allow()
	var open *breaker.OpenError
	fmt.Println(errors.Is(err, breaker.ErrOpen), errors.As(err, &open))
	fmt.Println(open.Key(), open.State(), open.Cause(), open.Reason(), open.Forced())
	fmt.Println(open.RetryAfter().Round(time.Second))
	// Output:
	// true true
	// payments open open consecutive false
	// 2m0s
}

func ExampleHooks() {
	b, _ := breaker.New("payments", breaker.Config{
		Consecutive: 2,
		Hooks: breaker.Hooks{
			Transition: func(t breaker.Transition) {
				fmt.Printf("%s %v -> %v: %v %q\n", t.Key, t.From, t.To, t.Reason, t.Note)
			},
		},
	})
	for range 2 {
		ticket, _ := b.Allow()
		ticket.Done(breaker.Outcome{Verdict: breaker.Failure})
	}
	b.Reset()
	b.ForceOpen("migration")
	// Output:
	// payments closed -> open: consecutive ""
	// payments open -> closed: reset ""
	// payments closed -> forced_open: forced "migration"
}

func ExampleBreaker_ForceOpen() {
	b, _ := breaker.New("payments", breaker.Config{})
	b.ForceOpen("migration until noon")
	_, err := b.Allow()
	fmt.Println(err)
	b.Release()
	fmt.Println(b.State())
	b.Reset()
	fmt.Println(b.State(), b.WouldAdmit())
	// Output:
	// breaker: payments is forced open: migration until noon
	// open
	// closed true
}

func ExampleBreaker_Disable() {
	b, _ := breaker.New("payments", breaker.Config{Failures: 1})
	b.Disable()
	ticket, _ := b.Allow()
	ticket.Done(breaker.Outcome{Verdict: breaker.Failure})
	fmt.Println(b.State(), b.Counts().Failures)
	b.Enable()
	fmt.Println(b.State(), b.Counts().Failures)
	// Output:
	// disabled 1
	// closed 0
}

func ExampleBreaker_Probe() {
	b, _ := breaker.New("payments", breaker.Config{Consecutive: 1, ProbeSuccesses: 1})
	ticket, _ := b.Allow()
	ticket.Done(breaker.Outcome{Verdict: breaker.Failure})
	fmt.Println(b.State(), b.WouldAdmit())

	probe, err := b.Probe() // there is nowhere else to go
	fmt.Println(err, probe.Probe(), probe.ProbeLimit())
	probe.Answered()
	probe.Done(breaker.Outcome{Verdict: breaker.Success})
	fmt.Println(b.State(), b.Generation(), b.Counts().Totals.ProbesSucceeded)
	// Output:
	// open false
	// <nil> true 10s
	// closed 3 1
}

func ExampleGroup() {
	g, _ := breaker.NewGroup(breaker.Config{Consecutive: 1}, 1000)
	ticket, _ := g.For("https://a.example").Allow()
	ticket.Done(breaker.Outcome{Verdict: breaker.Failure})
	g.For("https://b.example")
	fmt.Println(g.For("https://a.example").State(), g.For("https://b.example").State(), g.Len())
	for _, b := range g.All() {
		if b.State() != breaker.Closed {
			fmt.Println(b.Name(), b.State(), b.Counts().Totals.Opens)
		}
	}
	fmt.Println(g.Evictions(), g.Evicted().Opens)
	// Output:
	// open closed 2
	// https://a.example open 1
	// 0 0
}

func ExampleAllowBoth() {
	model, _ := breaker.New("llm|model-a", breaker.Config{Consecutive: 1})
	target, _ := breaker.New("llm", breaker.Config{Consecutive: 5})
	pair, err := breaker.AllowBoth(model, target)
	fmt.Println(err)
	pair.Done(breaker.Outcome{Verdict: breaker.Failure})
	_, err = breaker.AllowBoth(model, target)
	fmt.Println(err)
	fmt.Println(model.State(), target.State())
	// Output:
	// <nil>
	// breaker: llm|model-a is open
	// open closed
}

func ExampleBreaker_Update() {
	b, _ := breaker.New("payments", breaker.Config{Consecutive: 3})
	for range 2 {
		ticket, _ := b.Allow()
		ticket.Done(breaker.Outcome{Verdict: breaker.Failure})
	}
	fmt.Println(b.Update(breaker.Config{Consecutive: -1}))
	fmt.Println(b.Update(breaker.Config{Consecutive: 10}), b.Counts().Consecutive)
	// Output:
	// breaker: Consecutive = -1: must be 0 (the default) to 2000
	// <nil> 2
}

func ExampleOff() {
	c := *breaker.Off()
	fmt.Println(c.IsOff(), c.Check())
	// Output: true <nil>
}
