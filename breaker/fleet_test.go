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

// D094.
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
			w := join(t, store, "w", shared(), func(s *breaker.Sharing) {
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
				return
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

func BenchmarkFleetClosed(b *testing.B) {
	for _, c := range []struct {
		name string
		c    breaker.Config
	}{{"consecutive", breaker.Config{Consecutive: 5}}, {"span", breaker.Config{}}} {
		f, err := breaker.Join(breaker.Sharing{Store: breakertest.NewMemory()})
		require.NoError(b, err)
		local, err := breaker.New("db", c.c)
		require.NoError(b, err)
		shared, err := f.Breaker("db", c.c)
		require.NoError(b, err)
		for name, br := range map[string]*breaker.Breaker{"local": local, "shared": shared} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					t, err := br.Allow()
					if err != nil {
						b.Fatal(err)
					}
					t.Done(breaker.Outcome{Verdict: breaker.Success})
				}
			})
		}
	}
}

func TestSharingAllocatesNothing(t *testing.T) {
	f, err := breaker.Join(breaker.Sharing{Store: breakertest.NewMemory(), Refresh: time.Hour})
	require.NoError(t, err)
	b, err := f.Breaker("db", breaker.Config{})
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		tk, err := b.Allow()
		if err != nil {
			t.Fatal(err)
		}
		tk.Done(breaker.Outcome{Verdict: breaker.Success})
	}))
}

// TestTheClosedPathCostsLittleMore compares the best of many short passes, taken
// in turn. What a fleet adds is one load of a word that is seldom written; the
// rest is room for a busy machine.
func TestTheClosedPathCostsLittleMore(t *testing.T) {
	f, err := breaker.Join(breaker.Sharing{Store: breakertest.NewMemory()})
	require.NoError(t, err)
	for name, c := range map[string]breaker.Config{"consecutive": {Consecutive: 5}, "span": {}} {
		local, err := breaker.New("db", c)
		require.NoError(t, err)
		shared, err := f.Breaker(name, c)
		require.NoError(t, err)
		const calls, passes = 2_000, 100
		best := [2]time.Duration{time.Hour, time.Hour}
		for range passes {
			for which, b := range []*breaker.Breaker{local, shared} {
				start := time.Now()
				for range calls {
					tk, err := b.Allow()
					if err != nil {
						t.Fatal(err)
					}
					tk.Done(breaker.Outcome{Verdict: breaker.Success})
				}
				best[which] = min(best[which], time.Since(start))
			}
		}
		ns := func(d time.Duration) float64 { return float64(d) / calls }
		t.Logf("%s: local %.1f ns, shared %.1f ns", name, ns(best[0]), ns(best[1]))
		require.Less(t, ns(best[1]), 1.5*ns(best[0])+3)
	}
}
