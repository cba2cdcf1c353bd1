package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// S5: what is forced here and what is forced for the fleet are two things.
func TestS5_LocalAndFleetForceAreSeparate(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a, b := join(t, store, "a", shared()), join(t, store, "b", shared())
		use(time.Second, a, b)
		require.NoError(t, a.fleet.ForceOpen(t.Context(), "db", "all"))
		a.state(breaker.ForcedOpen)
		use(2*time.Second, b)
		require.Equal(t, "all", b.refused().Note())
		require.Equal(t, breaker.ReasonFleetForced, b.refused().Reason())

		b.b().Release()
		b.state(breaker.ForcedOpen)
		b.b().Reset()
		b.state(breaker.ForcedOpen)
		b.b().ForceOpen("here")
		require.Equal(t, "here; all", b.refused().Note())
		require.NoError(t, a.fleet.Release(t.Context(), "db"))
		a.state(breaker.Open)
		use(2*time.Second, b)
		require.Equal(t, "here", b.refused().Note(), "its own force stays")
		b.b().Release()
		b.state(breaker.Open)
		require.InDelta(t, 10*time.Second, b.refused().RetryAfter(), float64(5*ms), "a full cooldown")
		require.Equal(t, []breaker.State{breaker.ForcedOpen, breaker.Open}, b.path())

		// A forced circuit outlives the data of the store; a probe never passes.
		require.NoError(t, a.fleet.ForceOpen(t.Context(), "db", "again"))
		use(2*time.Second, a, b)
		store.Flush()
		use(2*time.Second, a, b)
		require.True(t, record(t, store).Forced)
		time.Sleep(time.Hour)
		use(2*time.Second, a, b)
		states(t, breaker.ForcedOpen, []*worker{a, b})
		_, err := b.b().Probe()
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// What happens when workers run different configurations, as the package says.
func TestWorkersWithDifferentConfigurations(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		strict, lax := shared(), shared()
		strict.Consecutive, strict.Cooldown, strict.ProbeSuccesses = 2, 20*time.Second, 3
		lax.Consecutive, lax.Cooldown, lax.ProbeSuccesses = 50, 5*time.Second, 1
		alone := shared()
		alone.Shadow = true
		a, b, c := join(t, store, "a", strict), join(t, store, "b", lax), join(t, store, "c", alone)
		use(time.Second, a, b)
		a.call(2, breaker.Failure)
		use(2*time.Second, a, b)
		states(t, breaker.Open, []*worker{a, b})
		c.state(breaker.Closed)
		require.InDelta(t, a.refused().RetryAfter(), b.refused().RetryAfter(), float64(5*ms), "the opener's cooldown")
		time.Sleep(20 * time.Second)
		done(a.probe(), breaker.Success)
		synctest.Wait()
		require.Equal(t, 1, record(t, store).Good)
		states(t, breaker.HalfOpen, []*worker{a, b})
		done(b.probe(), breaker.Success)
		synctest.Wait()
		require.False(t, record(t, store).Open, "the last prober's number")
		use(2*time.Second, a, b)
		states(t, breaker.Closed, []*worker{a, b})
	})
	bubble(t, func(t *testing.T, store *breakertest.Memory) { // three workers make the three probes
		c := shared()
		c.ProbeSuccesses = 3
		all := fleetOf(t, 3, store, c)
		all[0].fails()
		use(3*time.Second, all...)
		time.Sleep(8 * time.Second)
		for _, w := range all {
			done(w.probe(), breaker.Success)
			synctest.Wait()
		}
		all[2].state(breaker.Closed)
	})
}

// At most one refresh at a time, and nothing at all while nothing is used.
func TestNothingIsAskedWhileNothingIsUsed(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		w := join(t, store, "w", shared())
		w.wire.delay = func() time.Duration { return 90 * ms }
		use(time.Minute, w)
		require.EqualValues(t, 1, w.wire.most.Load())
		require.InDelta(t, 31, w.wire.commands.Load(), 3, "one in two seconds")
		time.Sleep(5 * time.Second)
		before := w.wire.commands.Load()
		time.Sleep(24 * time.Hour)
		require.Equal(t, before, w.wire.commands.Load())
	})
}

// A quorum counts on from nothing once the record of an earlier outage has expired.
func TestD099_ALaterOutageUnderAQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		c.Quorum = 2
		all := fleetOf(t, 3, store, c)
		for range 3 {
			all[0].fails()
			all[1].fails()
			use(4*time.Second, all...)
			states(t, breaker.Open, all)
			time.Sleep(8 * time.Second)
			done(all[2].probe(), breaker.Success)
			use(5*time.Minute, all...)
			states(t, breaker.Closed, all)
			require.Zero(t, store.Keys("holdfast"))
			all[2].fails() // by itself
			use(5*time.Second, all[2])
			all[2].state(breaker.Open)
			states(t, breaker.Closed, all[:2])
			time.Sleep(5 * time.Second)
			done(all[2].probe(), breaker.Success)
			synctest.Wait()
			all[2].state(breaker.Closed)
			time.Sleep(time.Minute)
		}
	})
}

// C2, S1: a breaker that an update takes out of the fleet has nothing more to tell it,
// be there what it may that the store was still to hear of.
func TestS1_ABreakerThatLeavesTheFleetTellsItNothingMore(t *testing.T) {
	for name, leave := range map[string]func(*breaker.Config){
		"shadow": func(c *breaker.Config) { c.Shadow = true }, "local": func(c *breaker.Config) { c.LocalOnly = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, store *breakertest.Memory) {
				w, other := join(t, store, "w", shared()), join(t, store, "other", shared())
				use(time.Second, w, other)
				w.wire.mode.Store(cut)
				w.fails()
				synctest.Wait()
				c := shared()
				leave(&c)
				require.NoError(t, w.group.Update(c))
				w.wire.mode.Store(sound)
				remains, err := w.fleet.Group(shared(), 0) // so that the worker still asks
				require.NoError(t, err)
				for range 50 {
					ticket, err := remains.For("another").Allow()
					require.NoError(t, err)
					done(&ticket, breaker.Success)
					use(100*ms, other)
				}
				require.False(t, record(t, store).Open)
				other.state(breaker.Closed)
			})
		})
	}
}
