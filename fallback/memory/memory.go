// Package memory is a store for stale answers in the memory of the process, held
// to a budget of bytes.
package memory

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// Store is a [fallback.Store]. Several policies, transports and connections may
// share one: each finds its own copies alone, and the budget is common. It has no
// goroutine and needs no closing.
type Store struct {
	cache *otter.Cache[string, entry]
}

type entry struct {
	value []byte
	ttl   time.Duration
}

var _ fallback.InProcess = (*Store)(nil)

// overhead is what an entry takes beside its key and value, in bytes: the cache's
// node, its place in the table and in the queues of eviction and expiry, the
// slice and the allocations' rounding. Measured, and rounded up.
const overhead = 200

// New returns a store that keeps at most budget bytes, keys and bookkeeping
// included. What is least asked for is evicted first, what has expired goes at the
// next accesses. A value too large for the budget is not kept. A budget that is not
// positive is an error.
func New(budget int64) (*Store, error) {
	if budget <= 0 {
		return nil, fmt.Errorf("memory: budget = %d: must be positive, in bytes", budget)
	}
	cache, err := otter.New(&otter.Options[string, entry]{
		MaximumWeight: uint64(budget),
		Weigher: func(key string, e entry) uint32 {
			return uint32(min(uint64(overhead+len(key)+cap(e.value)), math.MaxUint32))
		},
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, entry]) time.Duration { return e.Value.ttl }),
		Executor:         func(task func()) { task() }, // on the caller's goroutine
		Clock:            &clock{mono.Now()},
		Logger:           &otter.NoopLogger{},
	})
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return &Store{cache}, nil
}

// Get returns the value of a key, nil if there is none. It never fails.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	e, _ := s.cache.GetIfPresent(key)
	return e.value, nil
}

// Set stores a value for ttl; with none left it removes the key. It never fails.
func (s *Store) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if ttl <= 0 {
		s.cache.Invalidate(key)
		return nil
	}
	s.cache.Set(key, entry{value, ttl})
	return nil
}

// Delete removes a key. It never fails.
func (s *Store) Delete(ctx context.Context, key string) error {
	s.cache.Invalidate(key)
	return nil
}

// Bytes returns how many bytes of the budget are used.
func (s *Store) Bytes() int64 { return int64(s.cache.WeightedSize()) }

// Len returns about how many entries there are.
func (s *Store) Len() int { return s.cache.EstimatedSize() }

// InProcess says that the store waits for nobody.
func (s *Store) InProcess() {}

// clock is the monotonic clock. It never ticks: without ticks the cache has no
// goroutine.
type clock struct{ epoch mono.Instant }

func (c *clock) NowNano() int64 { return int64(mono.Now().Sub(c.epoch)) }

func (c *clock) Tick(time.Duration) <-chan time.Time { return nil }
