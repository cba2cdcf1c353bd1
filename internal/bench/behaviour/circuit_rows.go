package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// onEach is a row that runs one program on every library with a breaker.
func onEach(name, asks string, s settings, program func(circuit) (string, error)) row {
	r := row{name: name, asks: asks}
	for _, l := range libraries {
		r.cells = append(r.cells, cell{l.name, func() (string, error) { return program(l.circuit(s)) }})
	}
	return r
}

func circuitRows() []row {
	return []row{
		onEach("late success", "a call begins, five others fail and open the circuit, then the first succeeds", settings{}, lateSuccess),
		onEach("late failure", "a call begins, the circuit opens and comes to half-open, then the call fails while the probe is out", settings{}, lateFailure),
		onEach("panicking probe", "the probe panics", settings{}, panickingProbe),
		onEach("lost probe", fmt.Sprintf("the probe never returns and does not heed its limit of %v", limit), settings{limited: true}, lostProbe),
		onEach("stuck half-open", "the probe's caller cancels it, which says nothing of the dependency", settings{}, stuckHalfOpen),
		onEach("caller cancel counted", "twenty callers cancel their calls, none of which the dependency has failed", settings{}, callerCancel),
		callbackReentry(),
	}
}

func lateSuccess(c circuit) (string, error) {
	late := c.begin(context.Background())
	if err := c.trip(); err != nil {
		return "", err
	}
	late.finish(nil)
	err := c.call(context.Background(), succeeding)
	return fmt.Sprintf("%s after the success; the next call was %s", c.state(), admission(err, c)), nil
}

// admission tells whether a call was made.
func admission(err error, c circuit) string {
	switch {
	case errors.Is(err, c.open):
		return "refused"
	case err == nil:
		return "admitted"
	}
	return "admitted and failed: " + err.Error()
}

func lateFailure(c circuit) (string, error) {
	late := c.begin(context.Background())
	if err := c.trip(); err != nil {
		return "", err
	}
	probe, err := c.probe(context.Background())
	if err != nil {
		return "", err
	}
	before := c.state()
	late.finish(errDown)
	after := c.state()
	probe.finish(nil)
	return fmt.Sprintf("%s before the failure, %s after it, %s after the probe's success", before, after, c.state()), nil
}

func panickingProbe(c circuit) (string, error) {
	if err := c.trip(); err != nil {
		return "", err
	}
	time.Sleep(cooldown * 3 / 2)
	went := "the panic was swallowed"
	func() {
		defer func() {
			if recover() != nil {
				went = "the panic reached the caller"
			}
		}()
		_ = c.call(context.Background(), func(context.Context) error { panic("probe") })
	}()
	return fmt.Sprintf("%s; %s after it; %s", went, c.state(), c.next(time.Second)), nil
}

func lostProbe(c circuit) (string, error) {
	if err := c.trip(); err != nil {
		return "", err
	}
	if _, err := c.probe(context.Background()); err != nil {
		return "", err
	}
	return c.next(2 * time.Second), nil
}

func stuckHalfOpen(c circuit) (string, error) {
	if err := c.trip(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	probe, err := c.probe(ctx)
	if err != nil {
		return "", err
	}
	cancel()
	probe.finish(ctx.Err())
	state := c.state()
	return fmt.Sprintf("%s after it; %s", state, c.next(time.Second)), nil
}

func callerCancel(c circuit) (string, error) {
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		f := c.begin(ctx)
		if f.reason != nil {
			cancel()
			break
		}
		cancel()
		f.finish(ctx.Err())
	}
	state := c.state()
	return fmt.Sprintf("%s; the next call was %s", state, admission(c.call(context.Background(), succeeding), c)), nil
}

// callbackReentry asks a library's own callback to use the library.
func callbackReentry() row {
	r := row{name: "callback re-entry", asks: "the callback for a change of state reads the state and makes a call"}
	for _, l := range libraries {
		if !l.hooks {
			continue
		}
		r.cells = append(r.cells, cell{l.name, func() (string, error) {
			var c circuit
			var seen []string
			c = l.circuit(settings{onChange: func() {
				state := c.state()
				seen = append(seen, state+", a call "+admission(c.call(context.Background(), succeeding), c))
			}})
			for range failures {
				_ = c.call(context.Background(), failing)
			}
			return "returned; it saw " + strings.Join(seen, "; "), nil
		}})
	}
	return r
}
