package telemetry

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast/breaker"
)

var states = []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.ForcedOpen, breaker.Disabled}

// seen is a breaker as it is reported.
type seen struct {
	key     string
	breaker *breaker.Breaker
	states  [5]int64 // how many are in each
	moved   bool     // it was in another state than closed
	totals  breaker.Totals
}

func (k *kitSeries) observeBreakers(in *instruments, o metric.Observer) {
	all, dropped := k.breakers()
	k.ledger.settle(all, dropped)
	all = merge(all)
	var kitStates [5]int64
	for _, s := range all {
		for state, n := range s.states {
			kitStates[state] += n
		}
	}
	for i, state := range states {
		o.ObserveInt64(in.breakers, kitStates[i], k.attrs("", "", "state", state.String()))
	}
	if len(all) > k.maxKeys {
		all = k.cut(all)
	}
	for _, s := range all {
		for i, state := range states {
			if s.states[i] > 0 || s.moved || i == 0 {
				o.ObserveInt64(in.state, s.states[i], k.attrs("breaker", s.key, "state", state.String()))
			}
		}
	}
	for key, totals := range k.ledger.accounts {
		k.observeTotals(in, o, key, *totals)
	}
	if k.ledger.others || k.ledger.other != (breaker.Totals{}) {
		k.observeTotals(in, o, otherKey, k.ledger.other)
	}
	if k.ledger.evicted != (breaker.Totals{}) {
		k.observeTotals(in, o, evictedKey, k.ledger.evicted)
	}
}

// breakers returns the kit's breakers, and the totals of those that were dropped. These
// come first: of one that is dropped meanwhile something may be missing until the next
// time, and nothing is there twice.
func (k *kitSeries) breakers() (all []seen, dropped breaker.Totals) {
	_, dropped = k.kit.Evicted()
	for key, b := range k.kit.Breakers() {
		s := seen{key: redact(key), breaker: b, totals: b.Totals()}
		state := b.State()
		s.states[state]++
		s.moved = state != breaker.Closed || b.Generation() > 0
		all = append(all, s)
	}
	return all, dropped
}

// merge makes one of the states of breakers that have the same key, such as the
// overflow ones of several entries.
func merge(all []seen) []seen {
	at := make(map[string]int, len(all))
	merged := all[:0]
	for _, s := range all {
		i, again := at[s.key]
		if !again {
			at[s.key] = len(merged)
			merged = append(merged, s)
			continue
		}
		merged[i].add(s)
	}
	return merged
}

func (s *seen) add(other seen) {
	for i, n := range other.states {
		s.states[i] += n
	}
	s.moved = s.moved || other.moved
}

// cut leaves maxKeys breakers, those in trouble first, and one that stands for the
// others.
func (k *kitSeries) cut(all []seen) []seen {
	slices.SortFunc(all, func(a, b seen) int {
		if calm := a.calm() - b.calm(); calm != 0 {
			return calm
		}
		return strings.Compare(a.key, b.key) // the same ones each time
	})
	other := seen{key: otherKey}
	for _, s := range all[k.maxKeys:] {
		other.add(s)
	}
	return append(all[:k.maxKeys], other)
}

func (s *seen) calm() int {
	switch {
	case s.states[breaker.Closed] == 0:
		return 0
	case s.moved:
		return 1
	}
	return 2
}

func (k *kitSeries) observeTotals(in *instruments, o metric.Observer, key string, t breaker.Totals) {
	o.ObserveInt64(in.opens, int64(t.Opens), k.attrs("breaker", key, "", ""))
	for _, probe := range [...]struct {
		outcome breaker.ProbeOutcome
		n       uint64
	}{
		{breaker.ProbeSucceeded, t.ProbesSucceeded}, {breaker.ProbeFailed, t.ProbesFailed},
		{breaker.ProbeExpired, t.ProbesExpired}, {breaker.ProbeNeutral, t.ProbesNeutral},
	} {
		if probe.n > 0 || t.Opens > 0 {
			o.ObserveInt64(in.probes, int64(probe.n), k.attrs("breaker", key, "outcome", probe.outcome.String()))
		}
	}
	for cause, n := range [...]uint64{
		breaker.CauseOpen: t.RefusedOpen, breaker.CauseHalfOpen: t.RefusedHalfOpen,
		breaker.CauseForced: t.RefusedForced, breaker.CauseRamp: t.RefusedRamp,
	} {
		if n > 0 || t.Opens > 0 {
			o.ObserveInt64(in.breakerRefusals, int64(n), k.attrs("breaker", key, "cause", breaker.Cause(cause).String()))
		}
	}
}
