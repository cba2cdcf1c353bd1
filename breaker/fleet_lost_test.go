package breaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// S2, S5: a recovery from before a worker's own trouble is no news: it neither
// closes what the worker has found out itself nor empties a window of those that
// are well.
func TestS5_AnOldRecoveryEndsNoLaterOpening(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		c.Quorum = 2
		c.Window.Span = time.Hour // the record lasts so long
		all := fleetOf(t, 2, store, c)
		use(time.Second, all...)
		all[0].fails()
		all[1].fails()
		use(2*time.Second, all...)
		time.Sleep(9 * time.Second)
		done(all[0].probe(), breaker.Success)
		use(5*time.Second, all...)
		states(t, breaker.Closed, all)
		require.False(t, record(t, store).Open)
		require.NotZero(t, record(t, store).Generation)

		late, calm := join(t, store, "late", c), join(t, store, "calm", c)
		use(3*time.Second, late, calm)
		calm.call(4, breaker.Failure)
		late.fails() // by itself
		synctest.Wait()
		late.state(breaker.Open)
		use(4*time.Second, late, calm)
		late.state(breaker.Open)
		calm.state(breaker.Closed)
		require.Empty(t, calm.path())
		calm.call(1, breaker.Failure)
		calm.state(breaker.Open)
	})
}

// pages answers with a page of changes of which none is left, before the rest.
type pages struct{ breaker.Store }

func (p pages) Changes(ctx context.Context, space string, after breaker.Mark) (breaker.Changes, error) {
	ch, err := p.Store.Changes(ctx, space, after)
	if err == nil && ch.Whole && len(ch.Records) > 0 {
		ch.Mark.Revision, ch.More, ch.Records = ch.Records[0].Revision-1, true, nil
	}
	return ch, err
}

// S4: a page on which nothing is left is not the last one.
func TestS4_AnEmptyPageIsNotTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a := join(t, store, "a", shared())
		time.Sleep(time.Second)
		require.NoError(t, a.fleet.ForceOpen(t.Context(), "db", "all"))
		b := join(t, pages{store}, "b", shared())
		b.state(breaker.ForcedOpen)
		use(5*time.Minute, b)
		require.Len(t, b.path(), 1)
		b.state(breaker.ForcedOpen)
	})
}

// B10: a store that has failed over to a copy from before an order has not
// released anything.
func TestB10_AFailOverReleasesNothing(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, a *worker){
		"no record":     func(*testing.T, *worker) {},
		"an old record": func(t *testing.T, a *worker) { a.fails(); use(time.Second, a) },
	} {
		for _, further := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, store *breakertest.Memory) {
					a := join(t, store, "a", shared())
					use(time.Second, a)
					prepare(t, a)
					_, err := store.Open(t.Context(), "holdfast", "first", breaker.Opening{Worker: "b", Keep: 24 * time.Hour})
					require.NoError(t, err)
					synctest.Wait()
					older := store.Copy()
					time.Sleep(time.Second)
					require.NoError(t, a.fleet.ForceOpen(t.Context(), "db", "all"))
					use(3*time.Second, a)
					a.wire.other.Store(older)
					if further {
						_, err := older.Open(t.Context(), "holdfast", "another", breaker.Opening{Worker: "b", Known: record(t, store).Revision, Keep: time.Hour})
						require.NoError(t, err)
					}
					use(5*time.Minute, a)
					a.state(breaker.ForcedOpen)
					require.True(t, record(t, older).Forced, "it is forced again")
					require.NoError(t, a.fleet.Release(t.Context(), "db"))
					use(3*time.Second, a)
					a.state(breaker.Open)
					require.False(t, record(t, older).Forced)
				})
			})
		}
	}
}

// S1: a worker that may not probe since another does asks no more until that
// lock is over, whoever has opened.
func TestS1_ALockHeldElsewhereIsAskedForOnce(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		c := shared()
		c.Quorum = 3
		a, b := join(t, store, "a", c), join(t, store, "b", c)
		a.fails()
		b.fails()
		use(3*time.Second, a, b)
		time.Sleep(7100 * ms)
		p := a.probe()
		before := b.wire.commands.Load()
		for range 100 {
			b.refused()
		}
		require.LessOrEqual(t, b.wire.commands.Load(), before+2)
		done(p, breaker.Neutral)
		use(3 * time.Second)
		time.Sleep(3 * time.Second)
		done(b.probe(), breaker.Success)
	})
}

// S3: more probes at a time than there may be commands under way are refused; the
// store that is busy is not taken for one that is silent.
func TestS3_ABusyWorkerDoesNotProbeWithoutTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a := join(t, store, "a", shared())
		const keys = 200
		all := make([]*breaker.Breaker, keys)
		for i := range all {
			all[i] = a.group.For(string(rune('A' + i)))
			for range 5 {
				tk, err := all[i].Allow()
				require.NoError(t, err)
				done(&tk, breaker.Failure)
			}
		}
		use(10*time.Second, a)
		time.Sleep(10 * ms)
		a.wire.delay = func() time.Duration { return 50 * ms }
		for range 4 {
			for _, b := range all {
				go func() {
					if tk, err := b.Allow(); err == nil {
						done(&tk, breaker.Success)
					}
				}()
			}
			time.Sleep(200 * ms)
			synctest.Wait()
		}
		require.Zero(t, a.fleet.Stats().ProbesUnlocked)
		require.Greater(t, a.fleet.Stats().ProbesGranted, uint64(100), "there were more at a time than may ask")
		require.Zero(t, a.fleet.Stats().Failures)
		require.True(t, a.fleet.Stats().Answering)
	})
}

// S3: a worker that leaves the fleet while it probes gives the lock back.
func TestS3_WhoLeavesTheFleetKeepsNoLock(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a := join(t, store, "a", shared())
		a.fails()
		use(9*time.Second, a)
		time.Sleep(1100 * ms)
		p := a.probe()
		require.NotEmpty(t, record(t, store).Holder)
		c := shared()
		c.LocalOnly = true
		require.NoError(t, a.group.Update(c))
		done(p, breaker.Neutral)
		synctest.Wait()
		require.Empty(t, record(t, store).Holder)
		done(a.probe(), breaker.Success)
		a.state(breaker.Closed)
	})
}

// slowProbe answers late to who asks for a lock.
type slowProbe struct{ breaker.Store }

func (s slowProbe) Probe(ctx context.Context, space, key string, c breaker.Claim) (breaker.Record, error) {
	rec, err := s.Store.Probe(ctx, space, key, c)
	time.Sleep(150 * ms)
	return rec, err
}

// S3: a refresh that sees the worker's own lock before the answer to that arrives
// does not take it for another's.
func TestS3_OnesOwnLockIsNotAnothers(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		a := join(t, slowProbe{store}, "a", shared(), func(s *breaker.Sharing) { s.Refresh, s.Timeout = 200*ms, 200*ms })
		for came := false; !came; { // a refresh in between, which begins at a time of its own
			a.fails()
			use(9900*ms, a)
			time.Sleep(100 * ms)
			refreshes := a.fleet.Stats().Refreshes
			p := a.probe()
			came = a.fleet.Stats().Refreshes > refreshes
			done(p, breaker.Success)
			synctest.Wait()
			a.state(breaker.Closed)
		}
	})
}
