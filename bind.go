package holdfast

import (
	"errors"
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Binding is for the kit's own adapters: what ties a protocol to a kit.
type Binding struct {
	kit      *Kit
	index    int // in edition.tables
	protocol wire.Protocol
}

// Bind is for the kit's own adapters. It reads the kit's table by the rules of a
// protocol, now and after each update, and checks all that depends on how names nest.
// The error names every bad entry. All connections and transports of one protocol share
// one binding.
func (k *Kit) Bind(p wire.Protocol) (*Binding, error) {
	if k == nil {
		return nil, errNilKit
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.bound {
		if b.protocol.Name == p.Name {
			return b, nil
		}
	}
	b := &Binding{k, len(k.bound), p}
	d, faults := k.draft(k.now.Load().config, b)
	if err := faults.Err("holdfast"); err != nil {
		return nil, err
	}
	k.bound = append(k.bound, b)
	k.publish(d) // no layer is another, so there is nothing to tell
	return b, nil
}

// CheckFor is for the kit's own packages: it returns nil, or an error that names every
// fault that a kit for c would have once it is bound to a protocol. What users call is
// [New].
func (c Config) CheckFor(p wire.Protocol) error {
	k := &Kit{}
	k.now.Store(&edition{})
	_, faults := k.draft(c.clone(), &Binding{k, 0, p})
	return faults.Err("holdfast")
}

var errNilKit = errors.New("holdfast: the kit is nil; make one with holdfast.New")

// Table returns the table in force. A call stays with the one that it found.
func (b *Binding) Table() *Table { return b.kit.now.Load().tables[b.index] }

// Table is for the kit's own adapters: a kit's table as one protocol reads it, until
// the next update.
type Table struct {
	methods   map[string]*Method
	byDefault *Method
	routes    any
	keeps     bool // some policy keeps answers
}

// table reads the table of the draft for a protocol.
func (d *draft) table(p wire.Protocol) (*Table, check.Faults) {
	entries, faults := parseNames(d.config.Methods, p)
	keys := slices.Sorted(maps.Keys(entries))
	t := &Table{methods: make(map[string]*Method, len(keys)), byDefault: d.resolve("", nil)}
	broader := func(string) []string { return nil }
	if p.Broader != nil {
		broader = p.Broader(keys)
	}
	for _, key := range keys {
		chain := make([]source, 0, 3)
		for _, name := range append([]string{key}, broader(key)...) {
			chain = append(chain, source{name, entryField(entries[name].written), entries[name].policy})
		}
		m := d.resolve(key, chain)
		m.ownSafety = slices.ContainsFunc(chain, func(s source) bool {
			return s.field == m.safetyFrom && p.OneMethod(s.key)
		})
		if chain[0].policy.Safety != call.SafetyUnknown && !p.OneMethod(key) && p.DeclaresAll {
			faults.Add(chain[0].field+".Safety", chain[0].policy.Safety,
				"would hold only for methods of which %s declares nothing: name the method", p.Name)
		}
		faults.In(entryField(entries[key].written), m.check())
		faults.In(entryField(entries[key].written), m.checkFallback(chain[0].policy, p.Declared(key)))
		m.wire = p.Name
		m.own(p.OneMethod(key))
		t.methods[key] = m
		t.keeps = t.keeps || m.Stale() != nil
	}
	t.byDefault.wire = p.Name
	t.keeps = t.keeps || t.byDefault.Stale() != nil
	if p.Routes != nil && len(faults) == 0 {
		t.routes = p.Routes(keys)
	}
	return t, faults
}

// Method returns the policy of a table key, nil if the table has no such entry.
func (t *Table) Method(key string) *Method { return t.methods[key] }

func (t *Table) has(key string) bool { return t.methods[key] != nil }

// Default returns the policy of the methods that no entry names.
func (t *Table) Default() *Method { return t.byDefault }

// Routes returns what the protocol has made of the keys.
func (t *Table) Routes() any { return t.routes }

type entry struct {
	written string // the name as the user wrote it
	policy  Policy
}

// parseNames brings the names of a table into canonical form.
func parseNames(methods map[string]Policy, p wire.Protocol) (map[string]entry, check.Faults) {
	var faults check.Faults
	entries := make(map[string]entry, len(methods))
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		key, err := p.Parse(name)
		if err != nil {
			faults.Add(entryField(name), nil, "%v", err)
			continue
		}
		if other, taken := entries[key]; taken {
			faults.Add(entryField(name), nil, "names the same as %s", entryField(other.written))
			continue
		}
		entries[key] = entry{name, methods[name]}
	}
	if len(faults) == 0 && p.Conflict != nil {
		if err := p.Conflict(slices.Sorted(maps.Keys(entries))); err != nil {
			faults.Add("Methods", nil, "%v", err)
		}
	}
	return entries, faults
}

// checkFallback holds the rule that only a read may be answered by a fallback
// against the policy of an entry.
func (m *Method) checkFallback(own Policy, declared call.Safety) check.Faults {
	var faults check.Faults
	if own.Fallback == nil || own.Fallback.IsOff() {
		return nil
	}
	safety := declared
	if own.Safety != call.SafetyUnknown {
		safety = own.Safety
	}
	if safety != call.SafetyUnknown && safety != call.ReadOnly {
		faults.Add("Fallback", nil, "only a ReadOnly method may have one, and this is %v", safety)
	}
	return faults
}
