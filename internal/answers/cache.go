package answers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// Cache is the copies of one transport or connection, in whatever stores the
// policies name.
type Cache struct {
	scope string
	own   process
	aside atomic.Int64 // accesses of slow stores under way
	drops drops
}

// NewCache returns a cache that shares copies with those of the same scope, in
// other processes too if the store is shared. Empty is a scope of its own.
func NewCache(scope string) *Cache {
	c := &Cache{scope: "=" + scope}
	rand.Read(c.own[:])
	if scope == "" {
		c.scope = "*" + string(c.own[:])
	}
	return c
}

// maxAside bounds the accesses of slow stores under way at once.
const maxAside = 64

var errBusy = fmt.Errorf("fallback: the store was not asked, with %d accesses under way", maxAside)

// Get returns the copy under k, if it may be given now. An error says that the
// store failed.
func (c *Cache) Get(ctx context.Context, s *fallback.Stale, k Key) (e Entry, ok bool, err error) {
	value, err := c.get(ctx, s, k)
	return c.read(s, k, value, err)
}

// read makes of what the store has returned what there is to give.
func (c *Cache) read(s *fallback.Stale, k Key, value []byte, err error) (e Entry, ok bool, _ error) {
	if err != nil || value == nil {
		return Entry{}, false, err
	}
	if e, err = decode(value, k, c.own, mono.Now()); err != nil {
		failed(s, err)
		return Entry{}, false, nil
	}
	return e, e.Age < min(e.Limit, s.WithDefaults().MaxStale), nil
}

func (c *Cache) get(ctx context.Context, s *fallback.Stale, k Key) ([]byte, error) {
	if _, here := s.Store.(fallback.InProcess); here {
		value, err := s.Store.Get(ctx, k.String())
		return value, failed(s, err)
	}
	var value []byte
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(ctx, s.WithDefaults().StoreTimeout)
	defer cancel()
	if !c.spawn(func() {
		found, err := s.Store.Get(ctx, k.String())
		value = found
		done <- err
	}, func(err error) { done <- err }) {
		return nil, failed(s, errBusy)
	}
	select {
	case err := <-done:
		return value, failed(s, err)
	case <-ctx.Done():
		return nil, failed(s, fmt.Errorf("fallback: the store did not answer: %w", ctx.Err()))
	}
}

// Put stores a copy of an answer that was asked for at a moment, unless [Cache.Drop]
// was called for it since. It does not wait for a slow store, and no failure comes back.
func (c *Cache) Put(ctx context.Context, s *fallback.Stale, k Key, e Entry, asked Stamp) {
	if set := c.set(s, k, k, e, asked); set != nil {
		c.write(ctx, s, set)
	}
}

// set returns the access that stores a copy as a part of what whole names, nil if it is
// too old already or was removed.
func (c *Cache) set(s *fallback.Stale, whole, k Key, e Entry, asked Stamp) func(context.Context) error {
	ttl := min(e.Limit, s.WithDefaults().MaxStale) - e.Age
	if ttl <= 0 || c.drops.since(whole, asked) {
		return nil
	}
	value := e.encode(k, c.own, mono.Now())
	return func(ctx context.Context) error {
		if c.drops.since(whole, asked) {
			return nil
		}
		err := s.Store.Set(ctx, k.String(), value, ttl)
		if err == nil && c.drops.since(whole, asked) { // its removal may have been sooner than this copy
			err = s.Store.Delete(ctx, k.String())
		}
		return err
	}
}

// Drop removes a copy, as Put stores one. What was asked for before is not stored any
// more: it may be what the copy was removed for.
func (c *Cache) Drop(ctx context.Context, s *fallback.Stale, k Key) {
	c.drops.note(k)
	c.write(ctx, s, func(ctx context.Context) error { return s.Store.Delete(ctx, k.String()) })
}

func (c *Cache) write(ctx context.Context, s *fallback.Stale, access func(context.Context) error) {
	c.fill(Fill{ctx: ctx, cache: c, stale: s}, func(f Fill) { _ = f.do(access) })
}

// Fill is several accesses of a store, one after the other, by nobody who waits. What
// it stores is an answer, or a part of it, that was asked for at a moment.
type Fill struct {
	ctx   context.Context
	cache *Cache
	stale *fallback.Stale
	whole Key // which Drop removes
	asked Stamp
}

// Aside runs a fill so that nobody waits for it; of a slow store it counts as one
// access, however many it makes. For a store in this process it runs at once. What the
// fill puts are parts of what k names, as of when the answer was asked for: they are not
// stored if [Cache.Drop] was called for k since.
func (c *Cache) Aside(ctx context.Context, s *fallback.Stale, k Key, asked Stamp, fill func(Fill)) {
	c.fill(Fill{ctx, c, s, k, asked}, fill)
}

func (c *Cache) fill(f Fill, fill func(Fill)) {
	f.ctx = context.WithoutCancel(f.ctx) // the answer is whole, whatever its caller does now
	s := f.stale
	if _, here := s.Store.(fallback.InProcess); here {
		fill(f)
		return
	}
	if !c.spawn(func() { fill(f) }, func(err error) { _ = failed(s, err) }) {
		_ = failed(s, errBusy)
	}
}

// do makes an access, and tells of its failure.
func (f Fill) do(access func(context.Context) error) error {
	ctx := f.ctx
	if _, here := f.stale.Store.(fallback.InProcess); !here {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, f.stale.WithDefaults().StoreTimeout)
		defer cancel()
	}
	return failed(f.stale, access(ctx))
}

// Get is that of [Cache].
func (f Fill) Get(k Key) (Entry, bool, error) {
	var value []byte
	err := f.do(func(ctx context.Context) (err error) {
		value, err = f.stale.Store.Get(ctx, k.String())
		return err
	})
	return f.cache.read(f.stale, k, value, err)
}

// Put is that of [Cache]. It returns the store's failure.
func (f Fill) Put(k Key, e Entry) error {
	set := f.cache.set(f.stale, f.whole, k, e, f.asked)
	if set == nil {
		return nil
	}
	return f.do(set)
}

// spawn runs an access on a goroutine of its own, and reports whether it may. A
// panic there would end the process.
func (c *Cache) spawn(access func(), broke func(error)) bool {
	if c.aside.Add(1) > maxAside {
		c.aside.Add(-1)
		return false
	}
	go func() {
		defer c.aside.Add(-1)
		defer func() {
			if value := recover(); value != nil {
				broke(fmt.Errorf("fallback: the store panicked: %v", value))
			}
		}()
		access()
	}()
	return true
}

// failed tells of a failure, and returns it.
func failed(s *fallback.Stale, err error) error {
	if err != nil && s.StoreFailed != nil && !errors.Is(err, context.Canceled) {
		s.StoreFailed(err)
	}
	return err
}
