package breaker

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Fleet is this process's part in a fleet of workers: what it knows of the
// store's records, and the breakers that act on it. It needs no closing: it has
// no goroutine and no timer while its breakers are not in use.
//
// Breakers never wait for the store, but for one case: a call that is about to
// be a probe asks for the fleet's lock first and waits for at most
// Sharing.Timeout. A store that does not answer leaves the breakers to their own
// knowledge.
type Fleet struct {
	used atomic.Uint32 // a breaker was, since the last refresh
	_    [60]byte      // the word above is read for every call

	set  Sharing        // defaults filled
	draw func() float64 // of chance, with mu held

	down     atomic.Bool   // the store does not answer: only a refresh asks it
	revision atomic.Uint64 // all up to it has been taken in
	era      atomic.Uint32 // goes up when the store has lost what it had
	inFlight atomic.Int32
	claims   atomic.Uint64
	stats    fleetStats

	mu      sync.Mutex
	groups  []weak.Pointer[Group]
	singles held[[]weak.Pointer[Breaker]]
	mark    Mark
	known   map[string]known            // live records
	over    map[string]uint64           // revisions of those that closed since the last refresh
	unsaved held[weak.Pointer[Breaker]] // opened here, and the store does not know
	cycle   cycle
	errands errands
}

// known is a record as it was read at a moment.
type known struct {
	Record
	era uint32
	at  mono.Instant
}

// Join makes this process a worker of a fleet. It reads what the fleet knows
// first, for at most s.Timeout; a store that does not answer is no error, and what
// it has not told by then is read with the first use of a breaker. The error names
// every fault of s.
func Join(s Sharing) (*Fleet, error) { return JoinAt(s, mono.Now(), rand.Float64) }

// JoinAt is for the kit's own packages: Join for a simulation, which is to come out the
// same each time. What is left to chance is made of what draw returns, at least 0 and
// less than 1.
func JoinAt(s Sharing, now mono.Instant, draw func() float64) (*Fleet, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	f := &Fleet{
		set:   s.withDefaults(),
		draw:  draw,
		known: map[string]known{},
		over:  map[string]uint64{},
	}
	c := &f.cycle
	c.due, c.used, c.lastWoken = now, now, now.Add(-f.set.Refresh)
	if f.read(f.set.Timeout) {
		c.due = now.Add(f.set.Refresh)
	}
	c.last = mono.Now()
	return f, nil
}

// Is is for the kit's own packages: it reports whether f is what Join makes of s; a nil
// fleet is of nothing. The Health functions are not compared, and a Worker that s leaves
// out may be any.
func (f *Fleet) Is(s Sharing) bool {
	if f == nil {
		return false
	}
	if s.Worker == "" {
		s.Worker = f.set.Worker
	}
	s = s.withDefaults()
	return s.Store != nil && reflect.TypeOf(s.Store).Comparable() && s.Store == f.set.Store &&
		s.Space == f.set.Space && s.Worker == f.set.Worker &&
		s.Refresh == f.set.Refresh && s.Timeout == f.set.Timeout && s.Push == f.set.Push
}

// Group is [NewGroup] for breakers that share their state. A nil fleet makes a
// group that shares nothing. A key must mean the same in all groups of a fleet;
// the breaker that keys share when the group is full is this process's alone.
func (f *Fleet) Group(c Config, maxKeys int) (*Group, error) { return makeGroup(c, maxKeys, f) }

// add has f deliver what it hears to a group.
func (f *Fleet) add(g *Group) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.groups = append(compact(f.groups), weak.Make(g))
}

// Breaker is [New] for a breaker that shares its state. A nil fleet makes one
// that shares nothing.
func (f *Fleet) Breaker(name string, c Config) (*Breaker, error) {
	return f.BreakerAt(name, c, mono.Now(), rand.Float64)
}

// BreakerAt is for the kit's own packages: it is to Breaker what [NewAt] is to New.
func (f *Fleet) BreakerAt(name string, c Config, now mono.Instant, draw func() float64) (*Breaker, error) {
	b, err := NewAt(name, c, now, draw)
	if err != nil || f == nil {
		return b, err
	}
	r := f.compile(c)
	r.draw = draw
	b = newBreaker(name, r, now)
	f.mu.Lock()
	f.singles.set(name, append(compact(f.singles.all[name]), weak.Make(b)), func(list []weak.Pointer[Breaker]) bool {
		return slices.ContainsFunc(list, alive[Breaker])
	})
	f.mu.Unlock()
	b.rejoin(now)
	return b, nil
}

// compile makes rules for the breakers of f, which may be nil.
func (f *Fleet) compile(c Config) *rules {
	r := compile(c)
	if r.home = f; f != nil {
		r.draw = f.chance
	}
	if !c.LocalOnly && !c.Shadow {
		r.fleet = f
	}
	return r
}

// each calls do for the breakers of key that there are.
func (f *Fleet) each(key string, do func(*Breaker)) {
	f.mu.Lock()
	groups := f.groups
	singles := f.singles.all[key]
	f.mu.Unlock()
	for _, p := range groups {
		if g := p.Value(); g != nil {
			if b, ok := g.keys.Peek(key); ok {
				do(b)
			}
		}
	}
	for _, p := range singles {
		if b := p.Value(); b != nil {
			do(b)
		}
	}
}

// deliver hands a record to the breakers of its key. All have it before the hooks
// of one are told.
func (f *Fleet) deliver(rec *Record, now mono.Instant) {
	var touched []*Breaker
	f.each(rec.Key, func(b *Breaker) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.adopt(rec, now)
		touched = append(touched, b)
	})
	tellAll(touched)
}

// remember keeps a record for breakers of its key that are made later.
func (f *Fleet) remember(rec *Record, now mono.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, had := f.known[rec.Key]
	era := f.era.Load()
	switch {
	case had && k.era == era && k.Revision > rec.Revision:
	case !had && rec.Epoch == f.mark.Epoch && rec.Revision <= f.mark.Revision:
	case rec.live():
		f.known[rec.Key] = known{*rec, era, now}
	default:
		delete(f.known, rec.Key)
		f.over[rec.Key] = rec.Revision
	}
}

// recall returns what is known of a live record, as of now.
func (f *Fleet) recall(key string, now mono.Instant) (Record, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, ok := f.known[key]
	if !ok {
		return Record{}, false
	}
	since := max(now.Sub(k.at), 0)
	if k.Keep <= since {
		return Record{}, false
	}
	k.Left, k.Lease, k.Age = max(k.Left-since, 0), max(k.Lease-since, 0), k.Age+since
	return k.Record, true
}

// lostData notes that the store has an older record than it had, and has all be
// read anew.
func (f *Fleet) lostData() {
	f.era.Add(1)
	f.mu.Lock()
	f.cycle.count = wholeEvery
	clear(f.over)
	f.mu.Unlock()
	f.wake()
}

// chance draws from what the fleet was given.
func (f *Fleet) chance() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.draw()
}

func (f *Fleet) token() string {
	return f.set.Worker + "/" + strconv.FormatUint(f.claims.Add(1), 10)
}
