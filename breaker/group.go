package breaker

import (
	"iter"
	"sync"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// DefaultMaxKeys is the number of keys in a Group if none is given.
const DefaultMaxKeys = 10_000

// overflowKey names the breaker that new keys share when a group is full.
const overflowKey = "overflow"

// Group has one breaker for each key, all with one Config.
type Group struct {
	rules   *rules
	maxKeys int

	mu       sync.RWMutex
	keys     map[string]*Breaker
	overflow *Breaker
}

// NewGroup returns an empty group of at most maxKeys breakers; 0 is
// DefaultMaxKeys.
func NewGroup(c Config, maxKeys int) (*Group, error) {
	faults := c.Check()
	if c.IsOff() {
		faults.Add("Config", nil, "is switched off; there are no breakers to make")
	}
	if maxKeys < 0 {
		faults.Add("maxKeys", maxKeys, "must not be negative; zero is %d", DefaultMaxKeys)
	}
	if err := faults.Err("breaker"); err != nil {
		return nil, err
	}
	if maxKeys == 0 {
		maxKeys = DefaultMaxKeys
	}
	return &Group{rules: compile(c), maxKeys: maxKeys, keys: map[string]*Breaker{}}, nil
}

// For returns the breaker for key, a new one if there is none.
func (g *Group) For(key string) *Breaker { return g.ForAt(key, mono.Now()) }

// ForAt is For for a caller that has read the clock.
func (g *Group) ForAt(key string, now mono.Instant) *Breaker {
	g.mu.RLock()
	b := g.keys[key]
	g.mu.RUnlock()
	if b != nil {
		return b
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if b := g.keys[key]; b != nil {
		return b
	}
	if len(g.keys) >= g.maxKeys {
		if g.overflow == nil {
			g.overflow = newBreaker(overflowKey, g.rules, now)
		}
		return g.overflow
	}
	b = newBreaker(key, g.rules, now)
	g.keys[key] = b
	return b
}

// All returns the breakers of the group by key, in no order.
func (g *Group) All() iter.Seq2[string, *Breaker] {
	return func(yield func(string, *Breaker) bool) {
		g.mu.RLock()
		all := make([]*Breaker, 0, len(g.keys)+1)
		for _, b := range g.keys {
			all = append(all, b)
		}
		if g.overflow != nil {
			all = append(all, g.overflow)
		}
		g.mu.RUnlock()
		for _, b := range all {
			if !yield(b.key, b) {
				return
			}
		}
	}
}

// Len returns the number of breakers in the group.
func (g *Group) Len() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.keys)
}
