package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

// B10: a release is good although the store has just lost the order that it ends, by
// a fail-over to a copy from before. No worker that knows of the order gives it again,
// whoever released.
func TestB10_AReleaseRightAfterAFailOverIsNotUndone(t *testing.T) {
	prepared := map[string]func(a *worker){
		"no record":     func(*worker) {},
		"an old record": func(a *worker) { a.fails(); use(time.Second, a) },
	}
	who := map[string]func(t *testing.T, a *worker, older *breakertest.Memory) *worker{
		"who knows of it": func(_ *testing.T, a *worker, _ *breakertest.Memory) *worker { return a },
		"who does not": func(t *testing.T, _ *worker, older *breakertest.Memory) *worker {
			return join(t, older, "console", shared())
		},
	}
	for before, prepare := range prepared {
		for name, releaser := range who {
			for _, wait := range []time.Duration{0, 700 * ms} { // others may have found it out by then
				t.Run(before+"/"+name, func(t *testing.T) {
					bubble(t, func(t *testing.T, store *breakertest.Memory) {
						all := fleetOf(t, 3, store, shared())
						use(time.Second, all...)
						prepare(all[0])
						_, err := store.Open(t.Context(), "holdfast", "first", breaker.Opening{Worker: "b", Keep: 24 * time.Hour})
						require.NoError(t, err)
						use(3*time.Second, all...)
						older := store.Copy()
						time.Sleep(time.Second)
						require.NoError(t, all[0].fleet.ForceOpen(t.Context(), "db", "all"))
						use(3*time.Second, all...)
						states(t, breaker.ForcedOpen, all)

						for _, w := range all {
							w.wire.other.Store(older)
						}
						use(wait, all...)
						r := releaser(t, all[0], older)
						require.NoError(t, r.fleet.Release(t.Context(), "db"))
						ask := func(d time.Duration) {
							for range d / (200 * ms) {
								for _, w := range append(all, r) {
									if tk, err := w.b().Allow(); err == nil {
										done(&tk, breaker.Success)
									}
								}
								time.Sleep(200 * ms)
								synctest.Wait()
								for _, w := range append(all, r) {
									w.isNot(breaker.ForcedOpen)
								}
							}
						}
						if r == all[0] {
							use(9*time.Second, all...)
							states(t, breaker.Open, all) // for a full first cooldown
						} else {
							use(2*time.Second + 50*ms)
						}
						ask(20 * time.Second)
						states(t, breaker.Closed, all)
						require.False(t, record(t, older).Forced)
					})
				})
			}
		}
	}
}

// A release of what nobody has forced opens nothing, not even where a fleet knows the
// key.
func TestB10_AReleaseOfNothingOpensNothing(t *testing.T) {
	bubble(t, func(t *testing.T, store *breakertest.Memory) {
		all := fleetOf(t, 2, store, shared())
		use(time.Second, all...)
		require.NoError(t, all[0].fleet.Release(t.Context(), "db"))
		use(3*time.Second, all...)
		states(t, breaker.Closed, all)
		all[1].fails()
		use(3*time.Second, all...)
		require.NoError(t, all[0].fleet.Release(t.Context(), "db"))
		use(3*time.Second, all...)
		states(t, breaker.Open, all)
		time.Sleep(5 * time.Second)
		done(all[0].probe(), breaker.Success)
		use(3*time.Second, all...)
		states(t, breaker.Closed, all)
		require.Equal(t, []breaker.State{breaker.Open, breaker.Closed}, all[1].path(), "the cooldown was not begun anew")
	})
}
