package breaker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// counted counts the openings and the ends of probes that reach a store.
type counted struct {
	breaker.Store
	opens, ends atomic.Int64
}

func (c *counted) Open(ctx context.Context, space, key string, o breaker.Opening) (breaker.Record, error) {
	c.opens.Add(1)
	return c.Store.Open(ctx, space, key, o)
}

func (c *counted) Settle(ctx context.Context, space, key string, e breaker.Settlement) (breaker.Record, error) {
	c.ends.Add(1)
	return c.Store.Settle(ctx, space, key, e)
}

// takes makes each command of a worker take so long.
func takes(d time.Duration) func(*breaker.Sharing) {
	return func(s *breaker.Sharing) { s.Store.(*wire).delay = func() time.Duration { return d } }
}

// failAll opens the breakers of n keys, all at once.
func (w *worker) failAll(n int) {
	for i := range n {
		ticket, err := w.group.For(fmt.Sprint("host", i)).Allow()
		require.NoError(w, err)
		done(&ticket, breaker.Failure)
	}
}

// reads keeps the fleet in use by calls for another key.
func (w *worker) reads(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * ms) {
		ticket, err := w.group.For("another").Allow()
		require.NoError(w, err)
		done(&ticket, breaker.Neutral)
	}
	synctest.Wait()
}

// S1: an opening that waits for its turn is told all the same, once, and ends when
// it would have ended.
func TestS1_ManyOpeningsAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		store, within time.Duration
		least         int
	}{
		"a store of 5 ms":                          {5 * ms, time.Second, 2000},
		"a store that takes longer than a refresh": {20 * ms, 4 * time.Second, 2000},
		"a store that has no time for all of it":   {50 * ms, 5 * time.Second, 1400},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, memory *breakertest.Memory) {
				store := &counted{Store: memory}
				a := join(t, store, "a", breaker.Config{Consecutive: 1, Jitter: breaker.NoJitter}, takes(tc.store))
				a.failAll(2000)
				opened := time.Now()
				use(tc.within, a)
				require.GreaterOrEqual(t, store.opens.Load(), int64(tc.least))
				// Those under way at a refresh, one with each sender, may be told twice.
				refreshes := 1 + int64(tc.within/(2*time.Second))
				require.LessOrEqual(t, store.opens.Load(), 2000+15*refreshes)
				require.Zero(t, a.fleet.Stats().Failures)
				known := 0
				for mark, more := (breaker.Mark{}), true; more; {
					ch, err := memory.Changes(t.Context(), "holdfast", mark)
					require.NoError(t, err)
					for _, rec := range ch.Records {
						known++
						require.InDelta(t, 5*time.Second-time.Since(opened), rec.Left, float64(tc.store), rec.Key)
					}
					mark, more = ch.Mark, ch.More
				}
				require.GreaterOrEqual(t, known, tc.least)
			})
		})
	}
}

// S3: the end of a probe does not wait behind openings with the fleet's lock.
func TestS3_TheEndOfAProbeGoesFirst(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		c.Consecutive = 1
		all := fleetOf(t, 2, store, c, takes(5*ms))
		all[0].fails()
		use(9*time.Second, all...)
		time.Sleep(2 * time.Second)
		probe := all[0].probe()
		all[0].failAll(2000)
		done(probe, breaker.Neutral)
		time.Sleep(20 * ms)
		done(all[1].probe(), breaker.Success)
	})
}

// S3: the end of a probe that the store has not heard of is told once it answers,
// so that the lock is not held for as long as it lasts.
func TestS3_TheEndOfAProbeIsToldAgain(t *testing.T) {
	for _, end := range []breaker.Verdict{breaker.Neutral, breaker.Success, breaker.Failure} {
		t.Run(end.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, memory *breakertest.Memory) {
				store := &counted{Store: memory}
				c := shared()
				c.ProbeTimeout = time.Minute
				all := fleetOf(t, 2, store, c)
				all[0].fails()
				use(9*time.Second, all...)
				time.Sleep(2 * time.Second)
				probe := all[0].probe()
				all[0].wire.mode.Store(cut)
				done(probe, end)
				time.Sleep(time.Second)
				require.Equal(t, "w0", record(t, memory).Holder[:2], "the lock is held")
				all[0].wire.mode.Store(sound)
				all[0].reads(2 * time.Second)
				require.Empty(t, record(t, memory).Holder)
				require.EqualValues(t, 1, store.ends.Load())
				switch end {
				case breaker.Success:
					require.False(t, record(t, memory).Open)
					require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed}, all[0].path())
				case breaker.Failure:
					require.Equal(t, 2, record(t, memory).Nth)
					require.Equal(t, record(t, memory).Left, all[0].refused().RetryAfter(), "not longer than here")
				default:
					done(all[1].probe(), breaker.Success)
				}
			})
		})
	}
}

// S2: a recovery that the store hears of late ends no opening that came after it.
func TestS2_ALateRecoveryEndsNoLaterOpening(t *testing.T) {
	for range 20 { // what is told at the same time arrives in any order
		bubble(t, lateRecovery)
	}
}

func lateRecovery(t *testing.T, memory *breakertest.Memory) {
	c := shared()
	c.ProbeTimeout = time.Minute
	all := fleetOf(t, 2, memory, c, func(s *breaker.Sharing) {
		s.Store.(*wire).delay = func() time.Duration { return rand.N(10 * ms) }
	})
	a := all[0]
	a.fails()
	use(9*time.Second, all...)
	time.Sleep(2 * time.Second)
	probe := a.probe()
	first := record(t, memory)
	a.wire.mode.Store(cut)
	done(probe, breaker.Success)
	time.Sleep(time.Second)
	a.state(breaker.Closed)
	a.fails()
	a.wire.mode.Store(sound)
	a.reads(3 * time.Second)
	a.state(breaker.Open)
	require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed, breaker.Open}, a.path())
	last := record(t, memory)
	require.True(t, last.Open)
	require.Equal(t, 1, last.Nth)
	require.Greater(t, last.Generation, first.Generation, "the store has closed and opened")
	all[1].reads(3 * time.Second)
	all[1].state(breaker.Open)
}

// A lock that has expired is not given back.
func TestS3_TheEndOfAProbeIsNotToldTooLate(t *testing.T) {
	bubble(t, func(t *testing.T, memory *breakertest.Memory) {
		store := &counted{Store: memory}
		a := join(t, store, "a", shared())
		a.fails()
		use(9*time.Second, a)
		time.Sleep(2 * time.Second)
		probe := a.probe()
		a.wire.mode.Store(cut)
		done(probe, breaker.Success)
		a.reads(3 * time.Second)
		a.wire.mode.Store(sound)
		a.reads(3 * time.Second)
		require.Zero(t, store.ends.Load())
	})
}

// An order waits for its context and no longer, whatever the store does; one that
// does not heed it is left behind.
func TestAnOrderWaitsNoLongerThanItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a := join(t, store, "a", shared())
		for name, order := range map[string]func(context.Context) error{
			"ForceOpen": func(ctx context.Context) error { return a.fleet.ForceOpen(ctx, "db", "why") },
			"Release":   func(ctx context.Context) error { return a.fleet.Release(ctx, "db") },
		} {
			for _, mode := range []int32{hung, deaf} {
				a.wire.mode.Store(mode)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				begin := time.Now()
				require.ErrorIs(t, order(ctx), context.DeadlineExceeded, name)
				require.Equal(t, time.Second, time.Since(begin), name)
				before := a.wire.commands.Load()
				require.ErrorIs(t, order(ctx), context.DeadlineExceeded, "it is over before it begins")
				require.Equal(t, before, a.wire.commands.Load())
				cancel()
			}
		}
		a.state(breaker.Closed)
		time.Sleep(time.Minute) // until the deaf ones have returned
		a.wire.mode.Store(sound)
		require.NoError(t, a.fleet.ForceOpen(t.Context(), "db", "why"))
		a.state(breaker.ForcedOpen)
	})
}

// S1: a recovered breaker waits for the store for Timeout and no longer, also where
// what the store is told waits for its turn; and the store is told all the same.
func TestS1_ARecoveryDoesNotWaitForItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		const n = 60
		c := shared()
		c.Consecutive = 1
		all := fleetOf(t, 2, store, c, takes(5*ms))
		a := all[0]
		a.failAll(n)
		a.reads(9 * time.Second)
		all[1].reads(time.Second)
		time.Sleep(2 * time.Second)
		var probes []*breaker.Ticket
		for i := range n {
			ticket, err := a.group.For(fmt.Sprint("host", i)).Allow()
			require.NoError(t, err)
			require.True(t, ticket.Probe())
			probes = append(probes, &ticket)
		}
		a.wire.delay = func() time.Duration { return 90 * ms }
		for _, p := range probes {
			done(p, breaker.Success)
		}
		time.Sleep(100*ms - 1)
		open := 0
		for i := range n {
			if a.group.For(fmt.Sprint("host", i)).State() != breaker.Closed {
				open++
			}
		}
		require.Greater(t, open, n/2, "their turn has not come")
		time.Sleep(time.Nanosecond)
		for i := range n {
			b := a.group.For(fmt.Sprint("host", i))
			require.Equal(t, breaker.Closed, b.State())
			if i%2 == 0 { // by a call, and the others by the store's answer
				ticket, err := b.Allow()
				require.NoError(t, err)
				require.False(t, ticket.Probe())
				done(&ticket, breaker.Success)
			}
		}
		time.Sleep(time.Second)
		ch, err := store.Changes(t.Context(), "holdfast", breaker.Mark{})
		require.NoError(t, err)
		for _, rec := range ch.Records {
			require.False(t, rec.Open, rec.Key)
		}
		moves := map[string][]breaker.State{}
		for _, tr := range a.moves.all() {
			moves[tr.Key] = append(moves[tr.Key], tr.To)
		}
		require.Len(t, moves, n)
		for key, path := range moves {
			require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed}, path, key)
		}
		a.reads(5 * time.Second)
		require.Len(t, a.moves.all(), 3*n, "what it reads then is no news")
	})
}
