package holdfast

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/retry"
)

// edition is a kit's configuration made ready for calls, with the state that goes
// with it. It is not written to once calls can find it, and one word leads to all
// of it: no call sees half of an update.
type edition struct {
	config Config
	levels map[string]*level // by table key; "" is Default
	shared map[retry.Budget]*budgets

	byDefault *Method  // of a method without an entry, whatever the protocol
	tables    []*Table // by Binding.index
	plain     *Table   // that of Do; nil until it is used
	watchers
}

// draft is an edition in the making.
type draft struct {
	*edition
	before *edition // the one in force; an empty one for the first
	told   []func() // what is to be called once it is in force
}

// draft makes the edition of c, for the protocols that are bound and for more.
// It changes nothing of what is in force. It returns every fault. The caller holds
// k.mu, or has the kit for itself.
func (k *Kit) draft(c Config, more ...*Binding) (*draft, check.Faults) {
	d := &draft{
		edition: &edition{config: c, levels: map[string]*level{}, shared: map[retry.Budget]*budgets{}},
		before:  k.now.Load(),
	}
	d.counting = &k.counting
	k.joinHooks(d.edition)

	// Default and Standard alone must fit each other: every method without an
	// entry lives by them.
	d.byDefault = d.resolve("", nil)
	faults := append(c.check(), d.byDefault.check()...)
	d.byDefault.own(false)
	for _, b := range slices.Concat(k.bound, more) {
		t, fs := d.table(b.protocol)
		faults = append(faults, fs...)
		d.tables = append(d.tables, t)
		if b.protocol.Name == plainNames.Name {
			d.plain = t
		}
	}
	return d, once(faults)
}

// once drops what several protocols have found.
func once(faults check.Faults) check.Faults {
	seen := map[string]bool{}
	return slices.DeleteFunc(faults, func(f *check.Fault) bool {
		text := f.Error()
		defer func() { seen[text] = true }()
		return seen[text]
	})
}

// level returns the level of a table key, one whatever number of protocols read
// the table.
func (d *draft) level(name string) *level {
	l := d.levels[name]
	if l == nil {
		l = &level{name: name}
		d.levels[name] = l
	}
	return l
}

// publish puts the draft in force. It hands the state over first, so that whoever
// finds the new tables finds what belongs to them. The caller holds k.mu, and
// calls tell once that is released.
func (k *Kit) publish(d *draft) {
	for name := range d.before.levels {
		d.level(name) // what is dropped is handed over to nobody
	}
	for _, name := range slices.Sorted(maps.Keys(d.levels)) {
		l, old := d.levels[name], d.before.levels[name]
		if old == nil {
			old = &level{}
		}
		k.takeBreakers(l, old, d)
		l.takeBulkheads(old)
		l.takeBudgets(old, d)
		l.takeLatencies(old)
	}
	k.now.Store(d.edition)
}

// tell calls the hooks of breakers with what the update has found out about them,
// all of them though one may panic.
func (d *draft) tell() {
	for _, told := range d.told {
		defer told()
	}
}
