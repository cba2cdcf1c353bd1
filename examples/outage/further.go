package main

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/examples/outage/sim"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// inherit returns p with what it leaves out from the standard policy, as a kit
// does.
func inherit(p holdfast.Policy) holdfast.Policy {
	standard := holdfast.Standard()
	if p.Retry == nil {
		p.Retry = standard.Retry
	}
	if p.Breaker == nil {
		p.Breaker = standard.Breaker
	}
	if p.Timeout == nil {
		p.Timeout = standard.Timeout
	}
	if p.Bulkhead == nil {
		p.Bulkhead = standard.Bulkhead
	}
	return p
}

// bestRow is the name of the row of [Policy].
const bestRow = "kit, policy to copy"

// byHand is how many of [kitRows], the last ones, are no kit: they have its retry and
// its budget, and no breaker.
const byHand = 2

// kitRows are the same silence with the kit: its standard policy, then that with
// the caller's 2 s for an attempt, and with one layer more or another setting.
func kitRows() []row {
	kit := func(p holdfast.Policy) sim.Client { return sim.Client{Policy: inherit(p)} }
	hasty := &timeout.Limits{Total: 30 * time.Second, Attempt: patient}
	stalls := func(change func(*breaker.Config)) *breaker.Config {
		b := holdfast.Standard().Breaker
		b.Stall = breaker.Stall{After: 200 * time.Millisecond, Calls: 10}
		change(b)
		return b
	}
	soon := func(b *breaker.Config) {
		b.Cooldown, b.CooldownFactor, b.ProbeTimeout = time.Second, 1, 250*time.Millisecond
	}
	budget := func(perSecond float64) *retry.Policy {
		r := three()
		r.Budget = retry.Budget{PerSecond: perSecond}
		return r
	}
	rows := []row{
		{name: "kit, standard policy", client: kit(holdfast.Policy{})},
		{name: "kit, 2 s an attempt", client: kit(holdfast.Policy{Timeout: hasty})},
		{name: "kit, 2 s, bulkhead of 10", client: kit(holdfast.Policy{Timeout: hasty, Bulkhead: &bulkhead.Config{Limit: 10}})},
		{name: "kit, 2 s, stall rule", client: kit(holdfast.Policy{Timeout: hasty, Breaker: stalls(func(*breaker.Config) {})})},
		{name: "kit, stall, cooldown 1 s", client: kit(holdfast.Policy{Timeout: hasty, Breaker: stalls(soon)})},
		{name: "kit, stall, 1 s, ramp 5 s", client: kit(holdfast.Policy{Timeout: hasty, Breaker: stalls(func(b *breaker.Config) {
			soon(b)
			b.RampUp = 5 * time.Second
		})})},
		{name: bestRow, client: kit(Policy())},
		{name: "3 attempts, budget", client: sim.Client{Policy: holdfast.Policy{
			Timeout: &timeout.Limits{Attempt: patient}, Retry: budget(0),
		}}},
		{name: "3 attempts, budget 1/s", client: sim.Client{Policy: holdfast.Policy{
			Timeout: &timeout.Limits{Attempt: patient}, Retry: budget(1),
		}}},
	}
	for i := range rows {
		rows[i].setup = silence()
	}
	return rows
}

// The nested kits: five of 3 attempts each, in one process, before a dependency
// that answers with an error at once. Two A a second, so that no thread is short.
const (
	nestedKits = 5
	nestedA    = 2
)

// nestedRows are they, with and without what keeps attempts from multiplying.
func nestedRows() []row {
	setup := silence()
	setup.A = nestedA
	setup.Dependency = func(sim.Chance) sim.Dependency {
		return sim.Failing{Latency: latency, Error: 5 * time.Millisecond, From: from, To: to}
	}
	nested := func(name string, budget retry.Budget, even bool) row {
		return row{name: name, setup: setup, client: sim.Client{Kits: nestedKits, Policy: holdfast.Policy{
			Retry: &retry.Policy{MaxAttempts: 3, Backoff: retry.NoWait(), Budget: budget, EvenNested: even},
		}}}
	}
	return []row{
		nested("five kits", retry.NoBudget(), true),
		nested("five kits, budgets", retry.Budget{}, true),
		nested("five kits, aware", retry.NoBudget(), false),
		nested("five kits, aware, budgets", retry.Budget{}, false),
	}
}
