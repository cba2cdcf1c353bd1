package holdfast

import (
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/retry"
)

// Kit is the running state of the policies for one dependency: its breakers,
// bulkheads and retry budgets. Several connections or transports may share it.
// It is safe for concurrent use and needs no closing.
type Kit struct {
	config Config

	mu       sync.Mutex
	levels   map[string]*level   // by table key; "" is Default
	bindings map[string]*Binding // by protocol
	shared   map[retry.Budget]*keyed.Registry[*retry.Bucket]

	plain atomic.Pointer[Binding] // that of Do, kept aside from the lock

	attached []*Hooks // beside those of the config
	watchers
}

// New returns a kit for c, which it copies. The error names every bad field of
// c. Names in c.Methods are checked by the adapter, which knows their form.
func New(c Config) (*Kit, error) {
	if err := c.check().Err("holdfast"); err != nil {
		return nil, err
	}
	c = c.clone()
	if c.Name == "" {
		c.Name = "holdfast"
	}
	k := &Kit{config: c, levels: map[string]*level{}, bindings: map[string]*Binding{}, shared: map[retry.Budget]*keyed.Registry[*retry.Bucket]{}}

	k.joinHooks()

	// Default and Standard alone must fit each other already here: every
	// method without an entry lives by them.
	byDefault := k.resolve("", nil)
	if err := byDefault.check().Err("holdfast"); err != nil {
		return nil, err
	}
	if err := byDefault.furnish(); err != nil {
		return nil, err
	}
	return k, nil
}

// Name returns Config.Name, or its default.
func (k *Kit) Name() string { return k.config.Name }

// Breakers ranges over the kit's breakers by name, in no order: to force one open,
// say, or to show them. A breaker is made by the first call that needs it, and
// may be dropped again once nothing would be missed of it; ask anew rather than
// keep one.
func (k *Kit) Breakers() iter.Seq2[string, *breaker.Breaker] {
	k.mu.Lock()
	var groups []*breaker.Group
	for _, l := range k.levels {
		if l.breakers != nil {
			groups = append(groups, l.breakers)
		}
	}
	k.mu.Unlock()
	return func(yield func(string, *breaker.Breaker) bool) {
		for _, g := range groups {
			for name, b := range g.All() {
				if !yield(name, b) {
					return
				}
			}
		}
	}
}

func entryField(name string) string { return fmt.Sprintf("Methods[%q]", name) }
