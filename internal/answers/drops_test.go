package answers_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/answers"
)

// F3: what was asked for before a copy was removed does not bring it back, nor a part
// of it; what is asked for afterwards may.
func TestF3_AnAnswerAskedForBeforeARemovalIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		part := r.key.Part().Key()
		has := func(k answers.Key) bool {
			synctest.Wait()
			_, ok, err := r.Get(t.Context(), r.policy, k)
			require.NoError(t, err)
			return ok
		}
		e := answers.Entry{Limit: time.Minute}
		asked := r.Stamp()
		r.Put(t.Context(), r.policy, r.key, e, asked)
		require.True(t, has(r.key))
		r.Drop(t.Context(), r.policy, r.key) // in the same instant
		r.Put(t.Context(), r.policy, r.key, e, asked)
		r.Aside(t.Context(), r.policy, r.key, asked, func(f answers.Fill) { _ = f.Put(part, e) })
		require.False(t, has(r.key))
		require.False(t, has(part))

		asked = r.Stamp()
		r.Put(t.Context(), r.policy, r.key, e, asked)
		r.Aside(t.Context(), r.policy, r.key, asked, func(f answers.Fill) { _ = f.Put(part, e) })
		require.True(t, has(r.key))
		require.True(t, has(part))
	})
}

// The same where the removal comes while the copy is on its way to the store, and is
// there before it.
func TestF3_ARemovalOvertakesACopyOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		asked := r.Stamp()
		slow := make(chan struct{})
		r.store.hold = slow
		r.Put(t.Context(), r.policy, r.key, answers.Entry{Limit: time.Minute}, asked)
		synctest.Wait() // it is on its way
		r.store.mu.Lock()
		r.store.hold = nil
		r.store.mu.Unlock()
		r.Drop(t.Context(), r.policy, r.key)
		synctest.Wait()
		close(slow)
		synctest.Wait()
		_, ok, err := r.Get(t.Context(), r.policy, r.key)
		require.NoError(t, err)
		require.False(t, ok)
		require.Empty(t, r.store.values)
	})
}

// instant is a store in the process that a test can look into.
type instant struct {
	sync.Map
	sets atomic.Int64
}

func (*instant) InProcess() {}

func (s *instant) Get(_ context.Context, key string) ([]byte, error) {
	value, _ := s.Load(key)
	b, _ := value.([]byte)
	return b, nil
}

func (s *instant) Set(_ context.Context, key string, value []byte, _ time.Duration) error {
	s.sets.Add(1)
	runtime.Gosched() // a removal may come here
	s.Store(key, value)
	return nil
}

func (s *instant) Delete(_ context.Context, key string) error {
	s.Map.Delete(key)
	return nil
}

// Whatever the order of a removal and of what was asked for before it, on as many
// goroutines, no copy stays.
func TestF3_RemovalsAndCopiesBesideEachOther(t *testing.T) {
	r := newRig(t)
	s := &instant{}
	r.policy.Store = s
	for range 2000 {
		asked := r.Stamp()
		var all sync.WaitGroup
		all.Go(func() { r.Drop(t.Context(), r.policy, r.key) })
		for range 3 { // of several the last one begins first
			all.Go(func() { r.Put(t.Context(), r.policy, r.key, answers.Entry{Limit: time.Minute}, asked) })
		}
		all.Wait()
		_, ok, err := r.Get(t.Context(), r.policy, r.key)
		require.NoError(t, err)
		require.False(t, ok)
	}
	require.Positive(t, s.sets.Load(), "some copies were there before the removal")
	r.Put(t.Context(), r.policy, r.key, answers.Entry{Limit: time.Minute}, r.Stamp())
	_, ok, err := r.Get(t.Context(), r.policy, r.key)
	require.NoError(t, err)
	require.True(t, ok)
}
