package telemetry

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
)

// The values of the attribute breaker that stand for several.
const (
	evictedKey = "evicted" // dropped ones
	otherKey   = "other"   // those beyond MaxKeys
)

var states = []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.ForcedOpen, breaker.Disabled}

// kitSeries observes one kit. It keeps the attribute sets that it has made, for
// to make them is what costs.
type kitSeries struct {
	kit     *holdfast.Kit
	maxKeys int
	ledger  ledger
	round   int // of collection
	made    map[series]metric.MeasurementOption
	used    map[series]int // the round in which it was last used
}

// series is one set of attributes: the name of what is observed, and a word. Which
// attributes these are the instrument says.
type series struct{ by, name, as, word string }

func (k *kitSeries) attrs(by, name, as, word string) metric.MeasurementOption {
	s := series{by, name, as, word}
	k.used[s] = k.round
	if set, ok := k.made[s]; ok {
		return set
	}
	kvs := []attribute.KeyValue{attribute.String("kit", k.kit.Name())}
	if by != "" {
		kvs = append(kvs, attribute.String(by, redact(name)))
	}
	if as != "" {
		kvs = append(kvs, attribute.String(as, word))
	}
	set := metric.WithAttributeSet(attribute.NewSet(kvs...))
	k.made[s] = set
	return set
}

func (k *kitSeries) observe(in *instruments, o metric.Observer) {
	if k.made == nil {
		k.made, k.used = map[series]metric.MeasurementOption{}, map[series]int{}
	}
	k.round++
	k.observeBreakers(in, o)
	k.observeCalls(in, o)
	k.observeBulkheads(in, o)
	k.observeBudgets(in, o)
	k.observeStore(in, o)
	for s, round := range k.used {
		if round != k.round { // its key was evicted
			delete(k.used, s)
			delete(k.made, s)
		}
	}
}

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

func (k *kitSeries) observeCalls(in *instruments, o metric.Observer) {
	for name, t := range k.kit.Tallies() {
		for c := call.OK; c.Valid(); c++ {
			calls, attempts := t.Calls(c), t.Attempts(c)
			if calls > 0 || c == call.OK {
				o.ObserveInt64(in.calls, int64(calls), k.attrs("method", name, "result", c.String()))
			}
			if attempts > 0 || c == call.OK {
				o.ObserveInt64(in.attempts, int64(attempts), k.attrs("method", name, "result", c.String()))
			}
		}
		for _, cause := range holdfast.Causes() {
			refused, denied := t.Refusals(cause), t.Denied(cause)
			if refused+denied > 0 {
				o.ObserveInt64(in.refusals, int64(refused+denied), k.attrs("method", name, "cause", cause.String()))
			}
			if denied > 0 {
				o.ObserveInt64(in.denied, int64(denied), k.attrs("method", name, "cause", cause.String()))
			}
		}
		set := k.attrs("method", name, "", "")
		o.ObserveInt64(in.retries, int64(t.Retries()), set)
		if hedges := t.Hedges(); hedges > 0 {
			o.ObserveInt64(in.hedges, int64(hedges), set)
			o.ObserveInt64(in.hedgesWon, int64(t.HedgesWon()), set)
		}
		if n := t.Failovers(); n > 0 {
			o.ObserveInt64(in.failovers, int64(n), set)
		}
		if n := t.Fallbacks(); n > 0 {
			o.ObserveInt64(in.fallbacks, int64(n), set)
		}
	}
}

func (k *kitSeries) observeBulkheads(in *instruments, o metric.Observer) {
	left := k.maxKeys
	var inUse, waiting, limit int64
	for key, b := range k.kit.Bulkheads() {
		used, queued := int64(b.InUse()), int64(b.Waiting())
		if used+queued == 0 {
			continue
		}
		if left--; left < 0 {
			inUse, waiting, limit = inUse+used, waiting+queued, limit+int64(b.Limit())
			continue
		}
		k.observeBulkhead(in, o, key, used, queued, int64(b.Limit()))
	}
	if left < 0 {
		k.observeBulkhead(in, o, otherKey, inUse, waiting, limit)
	}
}

func (k *kitSeries) observeBulkhead(in *instruments, o metric.Observer, key string, inUse, waiting, limit int64) {
	set := k.attrs("bulkhead", key, "", "")
	o.ObserveInt64(in.inUse, inUse, set)
	o.ObserveInt64(in.waiting, waiting, set)
	o.ObserveInt64(in.limit, limit, set)
}

func (k *kitSeries) observeBudgets(in *instruments, o metric.Observer) {
	left := k.maxKeys
	other := 0.0
	for key, b := range k.kit.Budgets() {
		if b == nil || b.Full() {
			continue
		}
		if left--; left < 0 {
			other += b.Tokens()
			continue
		}
		o.ObserveFloat64(in.tokens, b.Tokens(), k.attrs("budget", key, "", ""))
	}
	if left < 0 {
		o.ObserveFloat64(in.tokens, other, k.attrs("budget", otherKey, "", ""))
	}
}

// observeStore observes what the kit shares with others, if it does.
func (k *kitSeries) observeStore(in *instruments, o metric.Observer) {
	fleet := k.kit.Fleet()
	if fleet == nil {
		return
	}
	s := fleet.Stats()
	up := int64(0)
	if s.Answering {
		up = 1
	}
	o.ObserveInt64(in.storeUp, up, k.attrs("", "", "", ""))
	o.ObserveInt64(in.storeFailures, int64(s.Failures), k.attrs("", "", "", ""))
	o.ObserveInt64(in.storeProbes, int64(s.ProbesGranted), k.attrs("", "", "outcome", "granted"))
	o.ObserveInt64(in.storeProbes, int64(s.ProbesHeld), k.attrs("", "", "outcome", "held_elsewhere"))
	o.ObserveInt64(in.storeProbes, int64(s.ProbesUnlocked), k.attrs("", "", "outcome", "unasked"))
}
