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
	shadow  [5]int64 // and how many that refuse nothing
	moved   bool     // it was in another state than closed
	totals  breaker.Totals
}

func (k *kitSeries) observeBreakers(in *instruments, o metric.Observer) {
	all, dropped := k.breakers()
	k.ledger.settle(all, dropped)
	all = merge(all)
	var kitStates [5]int64
	shadows := map[string]bool{}
	for _, s := range all {
		if s.shadow != [5]int64{} {
			shadows[s.key] = true
		}
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
		k.observeStates(in.state, o, s, s.states)
		k.observeStates(in.shadowState, o, s, s.shadow)
	}
	for key, totals := range k.ledger.accounts {
		k.observeTotals(in, o, key, *totals, shadows[key])
	}
	if k.ledger.others || k.ledger.other != (breaker.Totals{}) {
		k.observeTotals(in, o, otherKey, k.ledger.other, false)
	}
	if k.ledger.evicted != (breaker.Totals{}) {
		k.observeTotals(in, o, evictedKey, k.ledger.evicted, false)
	}
}

// observeStates observes how many breakers of a key are in each state, if any is.
func (k *kitSeries) observeStates(in metric.Int64Observable, o metric.Observer, s seen, n [5]int64) {
	if n == ([5]int64{}) {
		return
	}
	for i, state := range states {
		if n[i] > 0 || s.moved || i == 0 {
			o.ObserveInt64(in, n[i], k.attrs("breaker", s.key, "state", state.String()))
		}
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
		if b.Shadow() {
			s.shadow[state]++
		} else {
			s.states[state]++
		}
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
		s.shadow[i] += other.shadow[i]
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
	case s.states[breaker.Closed] == 0 && s.shadow == [5]int64{}:
		return 0
	case s.moved:
		return 1
	}
	return 2
}

// observeTotals observes what breakers did, and if there is a shadow, or was one that
// counted something, what that would have done.
func (k *kitSeries) observeTotals(in *instruments, o metric.Observer, key string, t breaker.Totals, shadow bool) {
	k.observeActions(in.opens, in.probes, in.breakerRefusals, o, key, t.Actions)
	if shadow || t.Shadow != (breaker.Actions{}) {
		k.observeActions(in.shadowOpens, in.shadowProbes, in.shadowRefusals, o, key, t.Shadow)
	}
}

func (k *kitSeries) observeActions(opens, probes, refusals metric.Int64Observable, o metric.Observer, key string, a breaker.Actions) {
	o.ObserveInt64(opens, int64(a.Opens), k.attrs("breaker", key, "", ""))
	for _, probe := range [...]struct {
		outcome breaker.ProbeOutcome
		n       uint64
	}{
		{breaker.ProbeSucceeded, a.ProbesSucceeded}, {breaker.ProbeFailed, a.ProbesFailed},
		{breaker.ProbeExpired, a.ProbesExpired}, {breaker.ProbeNeutral, a.ProbesNeutral},
	} {
		if probe.n > 0 || a.Opens > 0 {
			o.ObserveInt64(probes, int64(probe.n), k.attrs("breaker", key, "outcome", probe.outcome.String()))
		}
	}
	for cause, n := range [...]uint64{
		breaker.CauseOpen: a.RefusedOpen, breaker.CauseHalfOpen: a.RefusedHalfOpen,
		breaker.CauseForced: a.RefusedForced, breaker.CauseRamp: a.RefusedRamp,
	} {
		if n > 0 || a.Opens > 0 {
			o.ObserveInt64(refusals, int64(n), k.attrs("breaker", key, "cause", breaker.Cause(cause).String()))
		}
	}
}
