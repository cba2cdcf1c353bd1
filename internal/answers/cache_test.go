package answers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/answers"
)

// store is a store that is not in this process. hold, if not nil, is waited for
// in every access.
type store struct {
	mu     sync.Mutex
	values map[string][]byte
	ttl    time.Duration
	fails  error
	hold   chan struct{}
	deaf   bool // to its context
	panics bool
	calls  int
}

func (s *store) enter(ctx context.Context) error {
	s.mu.Lock()
	s.calls++
	hold, deaf, fails, panics := s.hold, s.deaf, s.fails, s.panics
	s.mu.Unlock()
	if panics {
		panic("the store is broken")
	}
	if hold != nil {
		if deaf {
			<-hold
		}
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fails
}

func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], nil
}

func (s *store) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	s.values[key], s.ttl = value, ttl
	return nil
}

func (s *store) Delete(ctx context.Context, key string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
	return nil
}

// rig is a cache over a store, with one key.
type rig struct {
	*answers.Cache
	store  *store
	policy *fallback.Stale
	key    answers.Key

	mu    sync.Mutex
	fails []error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Cache: answers.NewCache("scope"), store: &store{}}
	r.policy = &fallback.Stale{
		Store: r.store, Identity: fallback.SharedByAll, MaxStale: time.Minute,
		StoreFailed: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.fails = append(r.fails, err)
		},
	}
	h, ok := r.Key(t.Context(), r.policy, fallback.Request{}, false)
	require.True(t, ok)
	r.key = h.Key()
	return r
}

func (r *rig) failed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.fails)
}

func (r *rig) put(t *testing.T, e answers.Entry) {
	t.Helper()
	r.Put(t.Context(), r.policy, r.key, e, r.Stamp())
	synctest.Wait()
}

func TestWhatIsPutIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		_, ok, err := r.Get(t.Context(), r.policy, r.key)
		require.NoError(t, err)
		require.False(t, ok)
		r.put(t, answers.Entry{Age: 5 * time.Second, Fresh: 10 * time.Second, Limit: 40 * time.Second, Payload: []byte("a")})
		require.Equal(t, 35*time.Second, r.store.ttl)
		time.Sleep(7 * time.Second)
		e, ok, err := r.Get(t.Context(), r.policy, r.key)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, answers.Entry{Age: 12 * time.Second, Fresh: 10 * time.Second, Limit: 40 * time.Second, Payload: []byte("a")}, e)

		// A store that keeps it for too long does not make it good.
		time.Sleep(28*time.Second - 1)
		_, ok, _ = r.Get(t.Context(), r.policy, r.key)
		require.True(t, ok)
		time.Sleep(time.Nanosecond)
		_, ok, err = r.Get(t.Context(), r.policy, r.key)
		require.NoError(t, err)
		require.False(t, ok)

		r.Drop(t.Context(), r.policy, r.key)
		synctest.Wait()
		require.Empty(t, r.store.values)
		r.put(t, answers.Entry{Age: time.Minute, Limit: time.Hour})
		require.Empty(t, r.store.values, "it is too old already")
		r.put(t, answers.Entry{Limit: time.Hour})
		require.Equal(t, time.Minute, r.store.ttl, "the policy's end is nearer")
		require.Zero(t, r.failed())
	})
}

// Another process, or this one before it was started anew, has clocks of its own;
// the wall clock is what they share.
func TestAnEntryOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put(t, answers.Entry{Limit: time.Minute, Payload: []byte("a")})
		time.Sleep(20 * time.Second)
		other := answers.NewCache("scope")
		e, ok, err := other.Get(t.Context(), r.policy, r.key)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 20*time.Second, e.Age)
	})
}

// What a store holds of somebody else's, or has broken, is no answer and no error.
func TestBrokenAndForeignEntriesAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.put(t, answers.Entry{Age: 10 * time.Second, Limit: time.Minute, Payload: []byte("payload")})
		good := r.store.values[r.key.String()]
		try := func(value []byte) bool {
			r.store.values[r.key.String()] = value
			_, ok, err := r.Get(t.Context(), r.policy, r.key)
			require.NoError(t, err)
			return ok
		}
		require.True(t, try(good))
		head := len(good) - len("payload")
		for n := range head {
			require.False(t, try(good[:n]), "cut at %d", n)
		}
		for n := range 33 { // version and key
			bad := append([]byte(nil), good...)
			bad[n] ^= 1
			require.False(t, try(bad), "byte %d", n)
		}
		require.False(t, try([]byte("WRONGTYPE")))
		require.Positive(t, r.failed())

		// Under another key it is another's answer.
		h, _ := r.Key(t.Context(), r.policy, fallback.Request{}, false)
		h.Add("x")
		r.store.values[h.Key().String()] = good
		_, ok, err := r.Get(t.Context(), r.policy, h.Key())
		require.NoError(t, err)
		require.False(t, ok)

		// A clock that runs ahead proves that nothing is known of the age.
		r.Cache = answers.NewCache("scope")
		require.True(t, try(good))
		bad := append([]byte(nil), good...)
		bad[1+32+16+8+8]++ // the seconds of the stamp: by one, and the answer is older than that
		require.False(t, try(bad))
	})
}

// FuzzEntry: whatever a store hands out, nothing breaks, and what is given as an
// answer has an age within the policy's.
func FuzzEntry(f *testing.F) {
	s := &store{}
	policy := &fallback.Stale{Store: s, Identity: fallback.SharedByAll, StoreTimeout: time.Minute} // however busy the machine
	c := answers.NewCache("scope")
	h, _ := c.Key(context.Background(), policy, fallback.Request{}, false)
	k := h.Key()
	f.Add([]byte{})
	f.Add([]byte("\x01garbage"))
	good := written(f, c, policy, s, k)
	ours := 1 + len(k) // where it says which process has written it
	clock := ours + 16 // and when, by its own clock
	stamp := clock + 8 // and by everybody's
	spans := stamp + 15
	f.Add(good)
	for _, at := range []int{0, 1, ours, clock, spans, spans + 8, spans + 16} {
		f.Add(spoilt(good, at))
		f.Add(spoilt(spoilt(good, ours), at))
	}
	f.Add(spoilt(spoilt(good, ours), stamp)) // a form of time that nobody knows
	f.Add(spoilt(spoilt(good, ours), stamp+4))
	f.Add(good[:len(good)-len("payload")-1])
	f.Add(append(append([]byte{1}, k[:]...), make([]byte, 16+8+15+24+3)...))
	f.Fuzz(func(t *testing.T, value []byte) {
		s.mu.Lock()
		s.values = map[string][]byte{k.String(): value}
		s.mu.Unlock()
		e, ok, err := c.Get(t.Context(), policy, k)
		require.NoError(t, err)
		require.True(t, !ok || e.Age >= 0 && e.Age < 5*time.Minute)
	})
}

// written returns what a cache makes of an answer.
func written(f *testing.F, c *answers.Cache, policy *fallback.Stale, s *store, k answers.Key) []byte {
	c.Put(context.Background(), policy, k, answers.Entry{Limit: time.Minute, Payload: []byte("payload")}, c.Stamp())
	for {
		s.mu.Lock()
		value := s.values[k.String()]
		s.mu.Unlock()
		if value != nil {
			return value
		}
		time.Sleep(time.Millisecond) // real time: it is written aside
	}
}

// spoilt returns a copy with one bit of the byte at a place changed.
func spoilt(value []byte, at int) []byte {
	value = bytes.Clone(value)
	value[at] ^= 0x80
	return value
}

// A store that fails is told of, and its error comes back from a read alone.
func TestAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		down := errors.New("no store")
		r.store.fails = down
		_, ok, err := r.Get(t.Context(), r.policy, r.key)
		require.ErrorIs(t, err, down)
		require.False(t, ok)
		r.put(t, answers.Entry{Limit: time.Minute})
		r.Drop(t.Context(), r.policy, r.key)
		synctest.Wait()
		require.Equal(t, []error{down, down, down}, r.fails)

		r.store.panics = true
		_, _, err = r.Get(t.Context(), r.policy, r.key)
		require.EqualError(t, err, "fallback: the store panicked: the store is broken")
		r.put(t, answers.Entry{Limit: time.Minute})
		require.Equal(t, 5, r.failed())
	})
}

// A store that is silent costs a failed call StoreTimeout at most, or what its
// caller has left, and a good call nothing; the accesses are bounded, also if the
// store does not heed its context.
func TestAStoreThatIsSilent(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf ", deaf), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.store.hold, r.store.deaf = make(chan struct{}), deaf
				begin := time.Now()
				_, ok, err := r.Get(t.Context(), r.policy, r.key)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.False(t, ok)
				require.Equal(t, 100*time.Millisecond, time.Since(begin))

				short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				begin = time.Now()
				_, _, err = r.Get(short, r.policy, r.key)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 10*time.Millisecond, time.Since(begin))

				failed := r.failed()
				require.Equal(t, 2, failed)
				left, leave := context.WithCancel(t.Context())
				leave()
				_, _, err = r.Get(left, r.policy, r.key)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, failed, r.failed(), "who leaves says nothing of the store")

				synctest.Wait() // what no longer waits has let go, if it heeds its context
				begin = time.Now()
				for range 1000 {
					r.Put(t.Context(), r.policy, r.key, answers.Entry{Limit: time.Minute}, r.Stamp())
				}
				synctest.Wait() // what is removed before needs no access any more
				for range 1000 {
					r.Drop(t.Context(), r.policy, r.key)
				}
				require.Zero(t, time.Since(begin))
				synctest.Wait()
				require.LessOrEqual(t, r.store.calls, 3+64)
				_, _, err = r.Get(t.Context(), r.policy, r.key)
				require.ErrorContains(t, err, "64 accesses under way")

				close(r.store.hold)
				time.Sleep(time.Second)
				synctest.Wait()
				r.store.hold = nil
				r.put(t, answers.Entry{Limit: time.Minute})
				_, ok, err = r.Get(t.Context(), r.policy, r.key)
				require.NoError(t, err)
				require.True(t, ok, "all came back")
			})
		})
	}
}

// A fill counts as one access, and not with each of those it makes: as many as are
// allowed have all they need.
func TestFillsTakeOnePlaceEach(t *testing.T) {
	for _, n := range []int{1, 20, 64, 65} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.store.hold = make(chan struct{})
			var failed, done atomic.Int64
			r.policy.StoreFailed = func(error) { failed.Add(1) }
			for range n {
				r.Aside(t.Context(), r.policy, r.key, r.Stamp(), func(f answers.Fill) {
					if _, _, err := f.Get(r.key); err != nil {
						return
					}
					for range 2 {
						if f.Put(r.key, answers.Entry{Limit: time.Minute}) != nil {
							return
						}
					}
					done.Add(1)
				})
			}
			time.Sleep(50 * time.Millisecond)
			close(r.store.hold)
			synctest.Wait()
			require.EqualValues(t, min(n, 64), done.Load(), n)
			require.EqualValues(t, n-min(n, 64), failed.Load(), n)
			require.Equal(t, 3*min(n, 64), r.store.calls, n)
		})
	}
}

// Each access of a fill has StoreTimeout, and a store that fails or panics is told of.
func TestAFillOfAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.hold = make(chan struct{})
		var failed []error
		r.policy.StoreFailed = func(err error) { failed = append(failed, err) }
		begin, took := time.Now(), time.Duration(0)
		var got, put, nothing error
		r.Aside(t.Context(), r.policy, r.key, r.Stamp(), func(f answers.Fill) {
			_, _, got = f.Get(r.key)
			took = time.Since(begin)
			put = f.Put(r.key, answers.Entry{Limit: time.Minute})
			nothing = f.Put(r.key, answers.Entry{})
		})
		time.Sleep(time.Second)
		synctest.Wait()
		require.ErrorIs(t, got, context.DeadlineExceeded)
		require.Equal(t, 100*time.Millisecond, took)
		require.ErrorIs(t, put, context.DeadlineExceeded)
		require.NoError(t, nothing, "there is nothing to store")
		require.Len(t, failed, 2)
		r.store.panics = true
		r.Aside(t.Context(), r.policy, r.key, r.Stamp(), func(f answers.Fill) { _, _, _ = f.Get(r.key) })
		synctest.Wait()
		require.Len(t, failed, 3)
		require.ErrorContains(t, failed[2], "panicked")
	})
}
