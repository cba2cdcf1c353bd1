package breaker

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// DefaultMaxKeys is the number of keys that a [Group] has a breaker for at most if
// nothing else is said.
const DefaultMaxKeys = 10_000

// OverflowKey is the key of the breaker that new keys share when a [Group] is full of
// breakers that must not be dropped.
const OverflowKey = "overflow"

// Group has one breaker for each key, all with one Config, and bounds their
// number. To make room it drops the breaker that was not asked for the longest
// of those of which nothing would be missed: closed, without a failure or a
// slow call in the window, and with no attempt in flight as far as it knows. An
// attempt that it did not know of, and that fails after all, is booked by the
// breaker that now has its key. If no breaker can be dropped, new keys share
// one.
type Group struct {
	rules   atomic.Pointer[rules]
	update  sync.Mutex // held while another Config is put in force
	fleet   *Fleet
	keys    *keyed.Registry[*Breaker]
	before  uint64 // evictions of the group whose place it took, and what that left out
	max     int
	left    atomic.Bool // another group has gone on with its breakers
	evicted more        // the totals of breakers that were dropped
}

// NewGroup returns an empty group of at most maxKeys breakers; 0 is
// [DefaultMaxKeys], and a negative number is an error. The error names every fault of c.
func NewGroup(c Config, maxKeys int) (*Group, error) { return makeGroup(c, maxKeys, nil) }

func makeGroup(c Config, maxKeys int, f *Fleet) (*Group, error) {
	faults := c.faults("there are no breakers to make")
	if maxKeys < 0 {
		faults.Add("maxKeys", maxKeys, "must not be negative; zero is %d", DefaultMaxKeys)
	}
	if err := faults.Err("breaker"); err != nil {
		return nil, err
	}
	return emptyGroup(f.compile(c), maxKeys, f), nil
}

func emptyGroup(r *rules, maxKeys int, f *Fleet) *Group {
	if maxKeys == 0 {
		maxKeys = DefaultMaxKeys
	}
	g := &Group{max: maxKeys, fleet: f}
	g.rules.Store(r)
	g.keys = keyed.New(keyed.Options[*Breaker]{
		Max:         maxKeys,
		New:         g.make,
		Idle:        func(b *Breaker) bool { return !g.left.Load() && b.dispensable(mono.Now()) },
		Evicted:     func(_ string, b *Breaker) { b.retire(g) },
		OverflowKey: OverflowKey,
	})
	f.add(g)
	return g
}

// make returns a new breaker for key.
func (g *Group) make(key string) *Breaker {
	now := mono.Now()
	b := newBreaker(key, g.rulesOf(key, g.rules.Load()), now)
	b.rejoin(now)
	return b
}

// rulesOf returns r for the breaker of key: the one that many keys share is no
// affair of other workers.
func (g *Group) rulesOf(key string, r *rules) *rules {
	if key != OverflowKey || r.fleet == nil {
		return r
	}
	alone := *r
	alone.fleet = nil
	return &alone
}

// For returns the breaker for key, a new one if there is none. Ask for each
// attempt: the breaker of a key changes if it was dropped in between.
func (g *Group) For(key string) *Breaker { return g.ForAt(key, mono.Now()) }

// ForAt is for the kit's own packages: For for a caller that has read the clock.
func (g *Group) ForAt(key string, now mono.Instant) *Breaker { return g.keys.For(key, now) }

// All ranges over the breakers that the group has when it is called, by key and
// in no order; the shared one, if there is one, has the key OverflowKey.
func (g *Group) All() iter.Seq2[string, *Breaker] { return g.keys.All() }

// Len returns the number of keys that have a breaker of their own.
func (g *Group) Len() int { return g.keys.Len() }

// Evictions returns how many breakers were dropped.
func (g *Group) Evictions() uint64 { return g.before + g.keys.Evictions() }

// Evicted returns the totals of the breakers that were dropped, so that the sum
// over All and it never falls.
func (g *Group) Evicted() Totals { return g.evicted.totals() }

// dispensable reports whether nothing would be missed of b.
func (b *Breaker) dispensable(now mono.Instant) bool {
	ep := b.now.Load()
	if ep.state() != Closed || ep.over() {
		return false
	}
	if _, on := ep.rampNow(now); on {
		return false
	}
	if ep.rules.consecutive > 0 && ep.sum.Load()&rowMask != 0 {
		return false
	}
	if s := ep.stall; s != nil {
		if _, n := s.waiting(ep.rules, 0); n+s.answered.Load() > 0 {
			return false
		}
	}
	_, failed, slow := ep.tally(ep.sum.Load())
	if failed+slow == 0 {
		return true
	}
	c := b.countsAt(now)
	return c.Failures+c.Slow == 0
}

// retired is the state of a breaker that its group has dropped. It passes on
// whatever is still asked of it.
const retired State = 7

// retire ends b, whose totals go to the group.
func (b *Breaker) retire(g *Group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.now.Load()
	next := newStop(b, old.rules, retired, CauseOpen)
	next.out.group = g
	next.follow(old, 1)
	old.sum.Or(dead)
	b.now.Store(next)
	if m := b.more.Swap(&g.evicted); m != nil {
		g.evicted.absorb(m.totals())
	}
}

// heir returns the breaker that has the key of b now, if b is retired.
func (b *Breaker) heir(now mono.Instant) *Breaker {
	if ep := b.now.Load(); ep.state() == retired {
		return ep.out.group.ForAt(b.key, now)
	}
	return nil
}

// bequeath books what ended after b was retired, for a ticket of ep, if the
// heir has no history of its own yet.
func (b *Breaker) bequeath(ep *episode, end result, now mono.Instant) {
	if !end.failed && !end.slow {
		return
	}
	if last := b.now.Load(); last.state() != retired || last.generation() != ep.generation()+1 {
		return
	}
	heir := b.heir(at(now))
	if ep := heir.present(); ep.state() == Closed && ep.generation() == 0 {
		heir.book(ep, end, now)
	}
}
