package breakertest

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// Memory is a [breaker.Store] in this process's memory: the reference that says
// in Go what a store has to do. Workers that are given the same Memory are a
// fleet. The zero Memory is not ready for use; see [NewMemory].
type Memory struct {
	mu     sync.Mutex
	start  time.Time
	skew   time.Duration
	spaces map[string]*space
}

type space struct {
	mark     breaker.Mark
	rows     map[string]*row
	watchers map[chan struct{}]bool
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{start: time.Now(), spaces: map[string]*space{}} }

// Step puts the store's clock forward, or back if d is negative.
func (m *Memory) Step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skew += d
}

// Flush makes the store lose all it has.
func (m *Memory) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.spaces {
		s.mark, s.rows = breaker.Mark{}, map[string]*row{}
	}
}

// Copy returns a store that has what m has now, as a replica does to which a
// server fails over.
func (m *Memory) Copy() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Memory{start: m.start, skew: m.skew, spaces: map[string]*space{}}
	for name, s := range m.spaces {
		to := c.space(name)
		to.mark = s.mark
		for key, r := range s.rows {
			to.rows[key] = r.clone()
		}
	}
	return c
}

// Keys returns how many records of a space have not expired.
func (m *Memory) Keys(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for key := range m.space(name).rows {
		if m.load(m.space(name), key) != nil {
			n++
		}
	}
	return n
}

func (m *Memory) now() time.Duration { return time.Since(m.start) + m.skew }

func (m *Memory) space(name string) *space {
	s := m.spaces[name]
	if s == nil {
		s = &space{rows: map[string]*row{}, watchers: map[chan struct{}]bool{}}
		m.spaces[name] = s
	}
	return s
}

// load returns the row of key, nil if there is none.
func (m *Memory) load(s *space, key string) *row {
	r := s.rows[key]
	if r != nil && r.expires <= m.now() {
		delete(s.rows, key)
		return nil
	}
	return r
}

// change is one step on the row of a key. do returns false if it changes
// nothing.
func (m *Memory) change(
	ctx context.Context, name, key string, o *breaker.Opening, do func(r *row, now time.Duration, next func()) bool,
) (breaker.Record, error) {
	if err := ctx.Err(); err != nil {
		return breaker.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.space(name), m.now()
	old := m.load(s, key)
	r := &row{}
	if old != nil {
		r = old.clone()
	}
	told := false
	next := func() { // the circuit itself changes
		told = true
		r.revision = max(s.mark.Revision, o.Known, uint64(max(now.Microseconds(), 0))) + 1
	}
	generation, forced := r.generation, r.forced
	if !do(r, now, next) {
		if old == nil {
			return breaker.Record{Key: key}, nil
		}
		return old.record(key, s.mark.Epoch, now), nil
	}
	if s.mark.Epoch == 0 {
		s.mark.Epoch = rand.Uint64N(1<<52) + 1
	}
	if !told {
		next()
	}
	s.mark.Revision = r.revision
	r.expires = max(r.expires, now+o.Keep)
	s.rows[key] = r
	if r.generation != generation || r.forced != forced {
		s.wake()
	}
	return r.record(key, s.mark.Epoch, now), nil
}

// Changes is that of [breaker.Store].
func (m *Memory) Changes(ctx context.Context, name string, after breaker.Mark) (breaker.Changes, error) {
	if err := ctx.Err(); err != nil {
		return breaker.Changes{}, err
	}
	const page = 500
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.space(name), m.now()
	ch := breaker.Changes{Mark: s.mark, Whole: after.Epoch != s.mark.Epoch || after.Revision > s.mark.Revision || after.Revision == 0}
	if ch.Whole {
		after = breaker.Mark{}
	}
	for key := range s.rows {
		if r := m.load(s, key); r != nil && r.revision > after.Revision {
			ch.Records = append(ch.Records, r.record(key, s.mark.Epoch, now))
		}
	}
	slices.SortFunc(ch.Records, func(a, b breaker.Record) int { return cmp.Compare(a.Revision, b.Revision) })
	if len(ch.Records) > page {
		ch.Records, ch.More = ch.Records[:page], true
		ch.Revision = ch.Records[page-1].Revision
	}
	return ch, nil
}

// Open is that of [breaker.Store].
func (m *Memory) Open(ctx context.Context, space, key string, o breaker.Opening) (breaker.Record, error) {
	return m.change(ctx, space, key, &o, func(r *row, now time.Duration, next func()) bool {
		if r.open || r.generation > o.Known {
			return false
		}
		if r.report(&o, now) {
			next()
			r.openBy(&o, now)
		}
		return true
	})
}

// Probe is that of [breaker.Store].
func (m *Memory) Probe(ctx context.Context, space, key string, c breaker.Claim) (breaker.Record, error) {
	return m.change(ctx, space, key, &c.Opening, func(r *row, now time.Duration, next func()) bool {
		switch missing := r.revision == 0; {
		case missing && c.Shared && r.report(&c.Opening, now):
			next()
			o := c.Opening
			o.Left = 0
			r.openBy(&o, now)
		case missing:
		case r.forced || r.generation != c.Generation || r.locked(now):
			return false
		}
		r.holder, r.held, r.lease = c.Token, now, c.Lease
		return true
	})
}

// Settle is that of [breaker.Store].
func (m *Memory) Settle(ctx context.Context, space, key string, e breaker.Settlement) (breaker.Record, error) {
	return m.change(ctx, space, key, &e.Opening, func(r *row, now time.Duration, next func()) bool {
		if r.revision == 0 { // missing
			opens := e.To == breaker.Open && e.Shared
			if opens && r.report(&e.Opening, now) {
				next()
				r.openBy(&e.Opening, now)
			}
			return opens
		}
		if r.generation != e.Generation || r.locked(now) && r.holder != e.Token || !r.locked(now) && e.Locked {
			return false
		}
		r.unlock()
		switch {
		case e.To == breaker.Closed && r.open:
			next()
			r.open, r.generation, r.reports = false, r.revision, nil
		case e.To == breaker.Closed:
			delete(r.reports, e.Worker)
		case e.To == breaker.Open && (r.open || e.Shared && r.report(&e.Opening, now)):
			next()
			r.openBy(&e.Opening, now)
		case e.Outcome == breaker.ProbeSucceeded:
			r.good++
		case e.Outcome != breaker.ProbeNeutral:
			r.bad++
		}
		return true
	})
}

// Force is that of [breaker.Store].
func (m *Memory) Force(ctx context.Context, space, key string, o breaker.Order) (breaker.Record, error) {
	return m.change(ctx, space, key, &o.Opening, func(r *row, now time.Duration, next func()) bool {
		switch o.Do {
		case breaker.ForceNow:
			r.forced, r.note = true, o.Note
		case breaker.ForceAgain:
			if r.forced || r.revision > o.Known {
				return false
			}
			r.forced, r.note = true, o.Note
		case breaker.ForceKept:
			return r.forced
		case breaker.ForceOver:
			if r.forced || r.revision < o.Was {
				next()
				r.forced, r.note = false, ""
				r.openBy(&o.Opening, now)
			}
		}
		return true
	})
}

// Watch is that of [breaker.Watcher].
func (m *Memory) Watch(ctx context.Context, name string, wake func()) error {
	told := make(chan struct{}, 1)
	m.mu.Lock()
	s := m.space(name)
	s.watchers[told] = true
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(s.watchers, told)
	}()
	for wake(); ; wake() {
		select {
		case <-ctx.Done():
			return nil
		case <-told:
		}
	}
}

func (s *space) wake() {
	for told := range s.watchers {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}
