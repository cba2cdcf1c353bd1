package holdfast

import (
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/breaker"
)

// Kit is the running state of the policies for one dependency: its breakers,
// bulkheads and retry budgets. Several connections or transports may share it.
// It is safe for concurrent use and needs no closing.
type Kit struct {
	name string
	now  atomic.Pointer[edition] // what calls find

	mu       sync.Mutex // held to replace it
	bound    []*Binding
	attached []*Hooks            // beside those of the config
	lists    map[string][]string // of upstreams, by protocol; for Explain

	fleet *breaker.Fleet // nil if the breakers are this process's own

	counting counting
}

// New returns a kit for c, which it copies. The error names every bad field of
// c. Names in c.Methods are checked by the adapter, which knows their form.
func New(c Config) (*Kit, error) {
	c = c.clone()
	if c.Name == "" {
		c.Name = "holdfast"
	}
	k := &Kit{name: c.Name, lists: map[string][]string{}}
	k.now.Store(&edition{})
	d, faults := k.draft(c)
	if err := faults.Err("holdfast"); err != nil {
		return nil, err
	}
	if err := k.join(c.Shared); err != nil {
		return nil, err
	}
	k.publish(d)
	return k, nil
}

// Name returns Config.Name, or its default.
func (k *Kit) Name() string { return k.name }

// Breakers ranges over the kit's breakers by name, in no order: to force one open,
// say, or to show them. A breaker is made by the first call that needs it, and
// may be dropped again once nothing would be missed of it, or by an update; ask
// anew rather than keep one.
func (k *Kit) Breakers() iter.Seq2[string, *breaker.Breaker] {
	levels := k.now.Load().levels
	return func(yield func(string, *breaker.Breaker) bool) {
		for _, l := range levels {
			if l.breakers == nil {
				continue
			}
			for name, b := range l.breakers.All() {
				if !yield(name, b) {
					return
				}
			}
		}
	}
}

func entryField(name string) string { return fmt.Sprintf("Methods[%q]", name) }
