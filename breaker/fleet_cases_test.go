package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// D094, S2: an opening is set if there is none, and joining overwrites nothing.
func TestD094_JoiningWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a := join(t, store, "a", shared())
		a.fails()
		synctest.Wait()
		before := record(t, store)
		b := join(t, store, "b", shared())
		require.Equal(t, breaker.ReasonShared, b.refused().Reason(), "its first call")
		synctest.Wait()
		require.Equal(t, before, record(t, store))
		require.Equal(t, []breaker.State{breaker.Open}, b.path())
	})
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		all := fleetOf(t, 50, store, shared())
		use(3*time.Second, all...)
		states(t, breaker.Closed, all)
		require.Zero(t, store.Keys("holdfast"))
	})
}

// D095: the clocks of the workers play no part, since they exchange durations by
// the store's clock alone; here that clock is another than theirs too.
func TestD095_AllFollowTheStoresClock(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		store.Step(5 * time.Second)
		a, b := join(t, store, "a", shared()), join(t, store, "b", shared())
		use(time.Second, a, b)
		a.fails()
		use(2*time.Second, a, b)
		dueA, dueB := a.refused().RetryAfter(), b.refused().RetryAfter()
		require.InDelta(t, dueA, dueB, float64(5*ms))
		time.Sleep(dueA + 5*ms)
		states(t, breaker.HalfOpen, []*worker{a, b})
	})
}

// D096, as far as it is not about one kind of store.
func TestD096_LostKeysAreNoKnowledge(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		all := fleetOf(t, 3, store, shared())
		use(time.Second, all...)
		all[0].fails()
		use(2*time.Second, all...)
		states(t, breaker.Open, all)
		before := record(t, store)

		store.Flush()
		states(t, breaker.Open, all)
		use(2*time.Second, all...)
		states(t, breaker.Open, all)
		after := record(t, store)
		require.True(t, after.Open, "it is back within one refresh")
		require.NotEqual(t, before.Generation, after.Generation)
		require.InDelta(t, after.Left, all[1].refused().RetryAfter(), float64(5*ms))
		require.InDelta(t, before.Left-2*time.Second, after.Left, float64(200*ms), "with what is left of the cooldown")

		// Once the cooldown is over a flush leaves nothing to write; the next
		// probe makes the record anew.
		time.Sleep(after.Left + 5*ms)
		store.Flush()
		done(all[2].probe(), breaker.Success)
		synctest.Wait()
		use(2100*ms, all...)
		states(t, breaker.Closed, all)
	})
}

// D097.
func TestD097_NoCallWaitsForAStoreThatHangs(t *testing.T) {
	for _, mode := range []int32{cut, hung, deaf} {
		bubble(t, func(t *testing.T, store *breakertest.Memory) {
			var health []error
			c := shared()
			c.Cooldown, c.MaxCooldown = 5*time.Minute, 5*time.Minute
			w := join(t, store, "w", c, func(s *breaker.Sharing) {
				s.Health = func(err error) { health = append(health, err) }
			})
			use(time.Second, w)
			w.wire.mode.Store(mode)
			for range 50 {
				began := time.Now()
				w.call(1, breaker.Success)
				require.Zero(t, time.Since(began), "closed")
				time.Sleep(100 * ms)
			}
			synctest.Wait()
			require.Len(t, health, 1)
			require.Error(t, health[0])
			require.False(t, w.fleet.Stats().Answering)
			require.NotZero(t, w.fleet.Stats().Failures)
			w.fails()
			for range 50 {
				began := time.Now()
				w.refused()
				require.Zero(t, time.Since(began), "open")
				time.Sleep(100 * ms)
			}
			w.wire.mode.Store(sound)
			if mode == deaf {
				time.Sleep(time.Minute) // they have come back
			}
			use(2200*ms, w)
			require.True(t, record(t, store).Open, "the store is back: it knows within one refresh")
			require.Len(t, health, 2)
			require.NoError(t, health[1])
			require.True(t, w.fleet.Stats().Answering)
		})
	}
}

// S1: a probe waits for Timeout at most, and then goes by local knowledge.
func TestS1_AProbeWaitsForATimeoutAtMost(t *testing.T) {
	for _, mode := range []int32{hung, deaf} {
		bubble(t, func(t *testing.T, store *breakertest.Memory) {
			w := join(t, store, "w", shared())
			w.fails()
			synctest.Wait()
			time.Sleep(10 * time.Second)
			w.wire.mode.Store(mode)
			began := time.Now()
			p := w.probe()
			require.Equal(t, 100*ms, time.Since(began))
			require.EqualValues(t, 1, w.fleet.Stats().ProbesUnlocked)
			done(p, breaker.Success)
			w.state(breaker.HalfOpen)
			require.Zero(t, w.refused().RetryAfter())
			time.Sleep(201 * ms)
			w.state(breaker.Closed)
			require.Equal(t, breaker.ReasonRecovered, w.moves.all()[2].Reason)
		})
	}
}

// D098.
func TestD098_OneProbeForTheFleet(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		all := fleetOf(t, 20, store, shared())
		use(time.Second, all...)
		all[3].fails()
		use(2*time.Second, all...)
		time.Sleep(8 * time.Second)
		states(t, breaker.HalfOpen, all)

		// It ends when the holder is killed: nobody ever tells of its end.
		rush := func() (probes []*breaker.Ticket) {
			for _, w := range all {
				if tk, err := w.b().Allow(); err == nil {
					require.True(t, tk.Probe())
					probes = append(probes, &tk)
				}
			}
			return probes
		}
		require.Len(t, rush(), 1)
		dead := all[0]
		for _, w := range all {
			if w.fleet.Stats().ProbesGranted == 1 {
				dead = w
			}
		}
		dead.wire.mode.Store(cut)
		all = without(all, dead)
		for range 21 { // the lock lasts for the lease and two timeouts: 2.2 s
			require.Empty(t, rush())
			time.Sleep(100 * ms)
		}
		time.Sleep(100 * ms)
		probes := rush()
		require.Len(t, probes, 1)
		done(probes[0], breaker.Success)
		use(2*time.Second, all...)
		states(t, breaker.Closed, all)
	})
}

func without(all []*worker, one *worker) (rest []*worker) {
	for _, w := range all {
		if w != one {
			rest = append(rest, w)
		}
	}
	return rest
}

// D099.
func TestD099_AQuorumOpensForTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		c.Quorum = 2
		all := fleetOf(t, 4, store, c)
		use(time.Second, all...)
		all[0].fails()
		use(4*time.Second, all...)
		states(t, breaker.Open, all[:1])
		states(t, breaker.Closed, all[1:])
		all[1].fails()
		use(2*time.Second, all...)
		states(t, breaker.Open, all)
	})
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		c.LocalOnly = true
		all := append(fleetOf(t, 1, store, c), fleetOf(t, 3, store, shared())...)
		use(time.Second, all...)
		all[0].fails()
		use(4*time.Second, all...)
		states(t, breaker.Open, all[:1])
		states(t, breaker.Closed, all[1:])
		all[1].fails()
		use(2*time.Second, all...)
		require.Equal(t, breaker.ReasonConsecutive, all[0].refused().Reason(), "nor does it hear of them")
	})
}

// D100.
func TestD100_FailuresFromBeforeTheOpeningChangeNothing(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a, b := join(t, store, "a", shared()), join(t, store, "b", shared())
		use(time.Second, a, b)
		var older []*breaker.Ticket
		for range 20 {
			older = append(older, b.admit())
		}
		a.fails()
		synctest.Wait()
		first := record(t, store)
		for _, tk := range older[:10] { // b does not know yet: it opens too, and joins
			done(tk, breaker.Failure)
		}
		synctest.Wait()
		require.Equal(t, first, record(t, store))
		use(5*time.Second, a, b)
		for _, tk := range older[10:] {
			done(tk, breaker.Failure)
		}
		synctest.Wait()
		rec := record(t, store)
		require.Equal(t, first.Generation, rec.Generation)
		require.Equal(t, first.Left, rec.Left+rec.Age)
		require.InDelta(t, rec.Left, b.refused().RetryAfter(), float64(5*ms))
		require.EqualValues(t, 1, a.b().Counts().Totals.Opens)
	})
}

// D101.
func TestD101_RecordsExpire(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		w := join(t, store, "w", c)
		for i := range 1000 {
			b := w.group.For(string(rune('a'+i%26)) + time.Duration(i).String())
			for range 5 {
				tk, err := b.Allow()
				require.NoError(t, err)
				done(&tk, breaker.Failure)
			}
		}
		synctest.Wait()
		require.Equal(t, 1000, store.Keys("holdfast"))
		time.Sleep(time.Minute)
		require.Equal(t, 1000, store.Keys("holdfast"), "an open one does not expire early")
		time.Sleep(2 * time.Minute)
		require.Zero(t, store.Keys("holdfast"))
	})
}
