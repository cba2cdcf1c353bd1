package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// member makes the kit of one process of a fleet.
func member(t *testing.T, store breaker.Store, name string, more ...func(*holdfast.Config)) *holdfast.Kit {
	t.Helper()
	c := holdfast.Config{Name: name, Shared: &breaker.Sharing{Store: store}}
	c.Default.Retry = retry.Off()
	c.Default.Breaker = &breaker.Config{Consecutive: 3, ProbeSuccesses: 1, Jitter: breaker.NoJitter}
	for _, change := range more {
		change(&c)
	}
	k, err := holdfast.New(c)
	require.NoError(t, err)
	return k
}

func tryOnce(t *testing.T, k *holdfast.Kit, end error) error {
	t.Helper()
	_, err := holdfast.Do(t.Context(), k, call.Info{Target: "db", Method: "get"}, func(context.Context) (int, error) { return 0, end })
	return err
}

func TestKitsOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := breakertest.NewMemory()
		down := errors.New("down")
		a, b, other := member(t, store, "catalog"), member(t, store, "catalog"), member(t, store, "another dependency")
		require.NoError(t, tryOnce(t, b, nil))
		for range 3 {
			require.ErrorIs(t, tryOnce(t, a, down), down)
		}
		synctest.Wait()
		require.ErrorIs(t, tryOnce(t, a, nil), breaker.ErrOpen)
		late := member(t, store, "catalog")
		require.ErrorIs(t, tryOnce(t, late, nil), breaker.ErrOpen, "its first call")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.NoError(t, tryOnce(t, other, nil))
		require.ErrorIs(t, tryOnce(t, b, nil), breaker.ErrOpen)

		time.Sleep(3 * time.Second)
		require.NoError(t, tryOnce(t, b, nil), "one probe closes")
		synctest.Wait()
		require.NoError(t, tryOnce(t, b, nil))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		tryOnce(t, a, nil) // is in use
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.NoError(t, tryOnce(t, a, nil))

		require.NoError(t, a.Fleet().ForceOpen(t.Context(), "db", "moving house"))
		require.ErrorContains(t, tryOnce(t, a, nil), "forced open: moving house")
		tryOnce(t, b, nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.ErrorContains(t, tryOnce(t, b, nil), "forced open: moving house")
		time.Sleep(time.Minute)
	})
}

// S1: a probe's limit counts from its admission, not from the moment at which it
// began to wait for the lock.
func TestS1_TheWaitForTheLockIsNotTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: breakertest.NewMemory()}
		k := member(t, store, "catalog", func(c *holdfast.Config) {
			c.Default.Breaker.ProbeTimeout = 120 * time.Millisecond
		})
		for range 3 {
			require.Error(t, tryOnce(t, k, errors.New("down")))
		}
		time.Sleep(5 * time.Second)
		begin := time.Now()
		var left time.Duration
		_, err := holdfast.Do(t.Context(), k, call.Info{Target: "db", Method: "get"}, func(ctx context.Context) (int, error) {
			require.Equal(t, 90*time.Millisecond, time.Since(begin))
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return 0, nil
		})
		require.NoError(t, err)
		require.Equal(t, 120*time.Millisecond, left)
		time.Sleep(time.Minute)
	})
}

// slow is a store that takes its time with probes.
type slow struct{ breaker.Store }

func (s *slow) Probe(ctx context.Context, space, key string, c breaker.Claim) (breaker.Record, error) {
	time.Sleep(90 * time.Millisecond)
	return s.Store.Probe(ctx, space, key, c)
}

func TestAFleetsFaultsAreNamed(t *testing.T) {
	_, err := holdfast.New(holdfast.Config{Shared: &breaker.Sharing{Refresh: -1}})
	require.ErrorContains(t, err, "Shared.Store: must not be nil")
	require.ErrorContains(t, err, "Shared.Refresh = -1ns: must not be negative")
	_, err = holdfast.New(holdfast.Config{Shared: &breaker.Sharing{Store: breakertest.NewMemory(), Timeout: 3 * time.Second}})
	require.ErrorContains(t, err, "Shared.Timeout = 3s: must not exceed Refresh = 2s")
	k, err := holdfast.New(holdfast.Config{})
	require.NoError(t, err)
	require.Nil(t, k.Fleet())
	store := breakertest.NewMemory()
	require.ErrorContains(t, k.Update(holdfast.Config{Shared: &breaker.Sharing{Store: store}}), "Shared: cannot change")
	k, err = holdfast.New(holdfast.Config{Shared: &breaker.Sharing{Store: store}})
	require.NoError(t, err)
	require.NoError(t, k.Update(holdfast.Config{Shared: &breaker.Sharing{Store: store}}))
	require.NoError(t, k.Update(holdfast.Config{}))
	require.NotNil(t, k.Fleet())
	require.ErrorContains(t, k.Update(holdfast.Config{Shared: &breaker.Sharing{Store: breakertest.NewMemory()}}), "Shared: cannot change")
}
