package holdfast

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/retry"
)

// Bulkheads ranges over the kit's bulkheads by name, in no order. Like a breaker,
// one is made by the first call that needs it and may be dropped again.
func (k *Kit) Bulkheads() iter.Seq2[string, *bulkhead.Bulkhead] {
	var all []*keyed.Registry[*bulkhead.Bulkhead]
	for _, l := range k.now.Load().levels {
		if l.bulkheads != nil {
			all = append(all, l.bulkheads.Registry, l.parts.Registry)
		}
	}
	return each(all)
}

// Budgets ranges over the kit's retry budgets by name, in no order. A nil bucket
// is one without bounds.
func (k *Kit) Budgets() iter.Seq2[string, *retry.Bucket] {
	var all []*keyed.Registry[*retry.Bucket]
	for _, l := range k.now.Load().levels {
		if l.budgets != nil && !slices.Contains(all, l.budgets.Registry) { // they may be shared
			all = append(all, l.budgets.Registry)
		}
	}
	return each(all)
}

func each[V any](registries []*keyed.Registry[V]) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, r := range registries {
			for name, v := range r.All() {
				if !yield(name, v) {
					return
				}
			}
		}
	}
}

// Evicted returns how many breakers were dropped to make room for others, or by an
// update, and their totals, so that the sum over [Kit.Breakers] and these never
// falls. A breaker may be dropped while the others are read: ask before and after, and
// if evictions has not changed the sum is exact.
func (k *Kit) Evicted() (evictions uint64, t breaker.Totals) {
	for _, l := range k.now.Load().levels {
		if l.breakers != nil {
			evictions += l.breakers.Evictions()
			t = t.Plus(l.breakers.Evicted())
		}
	}
	return evictions, t
}

// Policies explains every policy that is in force: that of each entry of the table
// and, as Method "", that of the methods without one; for each protocol that uses
// the kit.
func (k *Kit) Policies() []Explanation {
	now, bound := k.bindings()
	var all []Explanation
	for _, b := range bound {
		t := now.tables[b.index]
		for _, key := range append([]string{""}, slices.Sorted(maps.Keys(t.methods))...) {
			all = append(all, b.explain(t, key))
		}
	}
	if len(all) == 0 { // no adapter has read the table yet
		e, by := now.byDefault.explain("", call.SafetyUnknown, "", plainNames.Waits)
		e.unread(by)
		all = append(all, e)
	}
	return all
}

// bindings returns what is in force, and by the protocols' names who reads it.
func (k *Kit) bindings() (*edition, []*Binding) {
	k.mu.Lock()
	now, bound := k.now.Load(), slices.Clone(k.bound)
	k.mu.Unlock()
	slices.SortFunc(bound, func(a, b *Binding) int { return cmp.Compare(a.protocol.Name, b.protocol.Name) })
	return now, bound
}

// explain explains the policy of a key, "" for the default.
func (b *Binding) explain(t *Table, key string) Explanation {
	m, declared := t.byDefault, call.SafetyUnknown
	if key != "" {
		m, declared = t.methods[key], b.protocol.Declared(key)
	}
	protocol := b.protocol.Name
	if protocol == plainNames.Name {
		protocol = ""
	}
	e, _ := m.explain(key, declared, protocol, b.protocol.Waits)
	e.Upstreams = b.kit.listsOf(b.protocol.Name)
	if protocol != "" && !b.protocol.OneMethod(key) && e.Safety == call.Unsafe && m.safety == call.SafetyUnknown {
		// It is not one method, and each may be declared to be something else.
		e.Safety, e.SafetyFrom = call.SafetyUnknown, "the wire ("+protocol+") of each method"
		if m.retry.policy != nil && m.retry.policy.MaxAttempts != 1 {
			e.OneAttempt = ""
		}
	}
	return e
}
