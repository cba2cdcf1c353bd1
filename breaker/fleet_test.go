package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

func TestS1_OneWorkersDiscoveryProtectsAll(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		all := fleetOf(t, 5, store, shared())
		use(3*time.Second, all...)
		all[0].fails()
		states(t, breaker.Closed, all[1:])
		use(2*time.Second, all...)
		states(t, breaker.Open, all)
		rec := record(t, store)
		for _, w := range all[1:] {
			require.Equal(t, []breaker.State{breaker.Open}, w.path())
			open := w.refused()
			require.Equal(t, breaker.ReasonShared, open.Reason())
			require.InDelta(t, rec.Left, open.RetryAfter(), float64(5*ms))
			require.Zero(t, w.b().Counts().Totals.Opens, "the opening is another's")
		}
	})
}

// The article's second demonstration: B opens at 0 ms; a call starts in A at
// 100; B closes and opens again at 200; A's success comes at 250, when what A
// knows is one generation old.
func TestS4_ASuccessOfAnOlderGenerationChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		c.Cooldown, c.MaxCooldown, c.CooldownFactor = 50*ms, 50*ms, 1
		timeout := func(s *breaker.Sharing) { s.Timeout = 10 * ms }
		a, b := join(t, store, "a", c, timeout), join(t, store, "b", c, timeout)
		begin := time.Now()
		at := func(d time.Duration) { time.Sleep(d - time.Since(begin)); synctest.Wait() }

		stray := a.admit() // of the closed state, from before
		b.fails()          // 0 ms
		synctest.Wait()
		a.fails() // A finds out as well, and joins
		synctest.Wait()
		first := record(t, store)

		at(90 * ms)
		a.wire.mode.Store(hung) // so A probes on its own knowledge, and B can at all
		began := time.Now()
		call := a.probe() // 100 ms
		require.Equal(t, 10*ms, time.Since(began))
		at(150 * ms)
		done(b.probe(), breaker.Success)
		at(200 * ms)
		b.state(breaker.Closed)
		b.fails() // 200 ms
		synctest.Wait()
		second := record(t, store)
		require.True(t, second.Open)
		require.NotEqual(t, first.Generation, second.Generation)
		a.wire.mode.Store(sound)

		at(240 * ms)
		done(stray, breaker.Success)
		at(250 * ms)
		a.state(breaker.HalfOpen)
		done(call, breaker.Success) // 250 ms
		a.state(breaker.HalfOpen)   // until the store has answered
		synctest.Wait()
		now := record(t, store)
		require.True(t, now.Open, "in the store")
		require.Equal(t, second.Mark, now.Mark)
		a.state(breaker.HalfOpen) // its cooldown of 50 ms is over
		require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open}, a.path(), "locally")
	})
}

func TestPush_AnOpeningReachesAllInMilliseconds(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		all := fleetOf(t, 5, store, shared(), push)
		use(3*time.Second, all...)
		all[0].fails()
		time.Sleep(ms)
		synctest.Wait()
		states(t, breaker.Open, all)

		// A worker that listens hears of it though it is not in use, for a while.
		time.Sleep(9 * time.Second)
		require.NoError(t, all[0].fleet.ForceOpen(t.Context(), "db", "stop"))
		time.Sleep(ms)
		synctest.Wait()
		states(t, breaker.ForcedOpen, all)
		quiet := all[1].wire.commands.Load()
		time.Sleep(time.Hour)
		require.LessOrEqual(t, all[1].wire.commands.Load(), quiet+1, "nothing is asked while nothing is used")
	})
}

// An answer that was on its way while another came says nothing that the other
// did not know.
func TestS4_AnAnswerThatComesLateChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		c.Cooldown, c.MaxCooldown = 2*time.Second, 2*time.Second
		a := join(t, store, "a", c, func(s *breaker.Sharing) { s.Timeout = 500 * ms })
		a.fails()
		a.wire.late.Store(int64(400 * ms))
		use(2*time.Second, a)
		require.EqualValues(t, 1, a.wire.refresh.Load(), "the record is read: it is open")
		done(a.probe(), breaker.Success)
		synctest.Wait()
		a.state(breaker.Closed)
		time.Sleep(500 * ms)
		require.Zero(t, a.wire.refresh.Load(), "the answer has come")
		a.state(breaker.Closed)
		require.Len(t, a.path(), 3)
	})
}

// S4: a store that has failed over to an older copy of itself, and has got
// further since, leaves no breaker to wait for a generation that is gone.
func TestS4_AFailOverToAnOlderCopy(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a := join(t, store, "a", shared())
		a.fails()
		use(9*time.Second, a)
		time.Sleep(time.Second)
		done(a.probe(), breaker.Success)
		use(time.Second, a)
		older := store.Copy() // in which it is closed
		a.fails()
		use(3*time.Second, a)
		a.wire.other.Store(older)
		_, err := older.Open(t.Context(), "holdfast", "another", breaker.Opening{Worker: "b", Known: record(t, store).Revision, Keep: time.Minute})
		require.NoError(t, err)
		use(6*time.Second, a)
		a.state(breaker.Open)
		time.Sleep(time.Second)
		done(a.admit(), breaker.Success) // the store says that it is closed
		a.state(breaker.Closed)
		use(3*time.Second, a)
		a.fails()
		synctest.Wait()
		require.True(t, record(t, older).Open)
	})
}
