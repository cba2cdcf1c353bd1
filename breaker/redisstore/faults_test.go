package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
)

// member is one worker of a fleet, with a wire to the server that can fail.
type member struct {
	proxy *proxy
	fleet *breaker.Fleet
	b     *breaker.Breaker
}

func join(t *testing.T, name, addr string, push bool, more ...func(*breaker.Sharing)) *member {
	t.Helper()
	m := &member{proxy: newProxy(t, addr)}
	s := store(t, client(t, m.proxy.addr()))
	sharing := breaker.Sharing{
		Store: s, Space: "s", Worker: name, Refresh: 200 * time.Millisecond, Timeout: 100 * time.Millisecond, Push: push,
	}
	for _, change := range more {
		change(&sharing)
	}
	var err error
	m.fleet, err = breaker.Join(sharing)
	require.NoError(t, err)
	m.b, err = m.fleet.Breaker("db", breaker.Config{Consecutive: 5, Cooldown: time.Minute, ProbeSuccesses: 1})
	require.NoError(t, err)
	return m
}

func (m *member) fails(t *testing.T) {
	t.Helper()
	for range 5 {
		tk, err := m.b.Allow()
		require.NoError(t, err)
		tk.Done(breaker.Outcome{Verdict: breaker.Failure})
	}
	require.Equal(t, breaker.Open, m.b.State())
}

// use keeps workers in use until the end of the test, in bursts, and fails it if
// a call panics.
func use(t *testing.T, all ...*member) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() {
			for !stop.Load() {
				if tk, err := m.b.Allow(); err == nil {
					tk.Done(breaker.Outcome{Verdict: breaker.Neutral})
				} else if _, ok := err.(*breaker.OpenError); !ok {
					t.Errorf("a caller gets %v", err)
				}
				time.Sleep(time.Millisecond) // real sockets, so real time
			}
		})
	}
	t.Cleanup(func() {
		stop.Store(true)
		wg.Wait()
	})
}

// soon waits for what another process and real sockets bring about.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 20*time.Second, 5*time.Millisecond, what)
}

func (m *member) is(s breaker.State) func() bool { return func() bool { return m.b.State() == s } }

func (m *member) answering(want bool) func() bool {
	return func() bool { return m.fleet.Stats().Answering == want }
}

// D096 and D097 over sockets, against a real server: what becomes of the wire or
// of the server, the breakers work on, no caller is told, and afterwards the
// fleet is one again.
func TestFaultsOfTheWire(t *testing.T) {
	addr := server(t)
	for name, m := range map[string]mode{"hangs": hangs, "drops": drops, "garbage": garbage, "lies": lies} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, client(t, addr).FlushAll(t.Context()).Err())
			a, b := join(t, "a", addr, false), join(t, "b", addr, true)
			use(t, a, b)
			soon(t, "a is joined", a.answering(true))
			soon(t, "b is joined", b.answering(true))
			a.proxy.set(m)
			b.proxy.set(m)
			soon(t, "a notices", a.answering(false))
			soon(t, "b notices", b.answering(false))
			a.fails(t)
			require.Equal(t, breaker.Closed, b.b.State())
			require.Error(t, a.fleet.Stats().LastError)
			a.proxy.set(passes)
			b.proxy.set(passes)
			soon(t, "the opening reaches b", b.is(breaker.Open))
			soon(t, "a is well", a.answering(true))
		})
	}
}

func TestFaultsOfTheServer(t *testing.T) {
	addr := server(t)
	c := client(t, addr)
	s := store(t, c)
	open := func() bool {
		ch, err := s.Changes(t.Context(), "s", breaker.Mark{})
		return err == nil && len(ch.Records) == 1 && ch.Records[0].Open
	}
	for name, fault := range map[string]func(ctx context.Context) error{
		"all keys lost":       func(ctx context.Context) error { return c.FlushAll(ctx).Err() },
		"of another type":     func(ctx context.Context) error { return c.Set(ctx, records, "x", 0).Err() },
		"a record of garbage": func(ctx context.Context) error { return c.HSet(ctx, records, "kdb", "x y z").Err() },
		"scripts lost":        func(ctx context.Context) error { return errors.Join(c.ScriptFlush(ctx).Err(), c.FlushAll(ctx).Err()) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.FlushAll(t.Context()).Err())
			a, b := join(t, "a", addr, false), join(t, "b", addr, false)
			use(t, a, b)
			a.fails(t)
			soon(t, "b is open", b.is(breaker.Open))
			require.NoError(t, fault(t.Context()))
			soon(t, "the record is back", open)
			require.Equal(t, breaker.Open, a.b.State())
			require.Equal(t, breaker.Open, b.b.State())
		})
	}
}

// A fail-over to a server that has nothing.
func TestFailOver(t *testing.T) {
	first, second := server(t), server(t)
	a, b := join(t, "a", first, true), join(t, "b", first, true)
	use(t, a, b)
	a.fails(t)
	soon(t, "b is open", b.is(breaker.Open))
	a.proxy.failOver(second)
	b.proxy.failOver(second)
	s := store(t, client(t, second))
	soon(t, "the record is on the second server", func() bool {
		ch, err := s.Changes(t.Context(), "s", breaker.Mark{})
		return err == nil && len(ch.Records) == 1 && ch.Records[0].Open
	})
	require.NoError(t, a.fleet.ForceOpen(t.Context(), "db", "by hand"))
	soon(t, "they still hear of each other", b.is(breaker.ForcedOpen))
	require.NoError(t, b.fleet.Release(t.Context(), "db"))
	soon(t, "released", a.is(breaker.Open))
}

// B10: a release right after a fail-over to a server that never had the order.
func TestB10_AReleaseRightAfterAFailOver(t *testing.T) {
	first, second := server(t), server(t)
	a, b := join(t, "a", first, true), join(t, "b", first, true)
	use(t, a, b)
	require.NoError(t, a.fleet.ForceOpen(t.Context(), "db", "by hand"))
	soon(t, "b is forced open", b.is(breaker.ForcedOpen))
	a.proxy.failOver(second)
	b.proxy.failOver(second)
	soon(t, "released, once there is a connection", func() bool { return b.fleet.Release(t.Context(), "db") == nil })
	soon(t, "a hears of it", a.is(breaker.Open))
	for _, m := range []*member{a, b} {
		before := m.fleet.Stats().Refreshes
		soon(t, "several refreshes", func() bool { return m.fleet.Stats().Refreshes > before+5 })
	}
	require.Equal(t, breaker.Open, a.b.State())
	require.Equal(t, breaker.Open, b.b.State())
}

// D097: refused at construction, the fleet starts.
func TestD097_AFleetStartsWithoutItsStore(t *testing.T) {
	f, err := breaker.Join(breaker.Sharing{Store: store(t, client(t, "127.0.0.1:1"))})
	require.NoError(t, err)
	require.False(t, f.Stats().Answering)
	b, err := f.Breaker("db", breaker.Config{Consecutive: 1})
	require.NoError(t, err)
	tk, err := b.Allow()
	require.NoError(t, err)
	tk.Done(breaker.Outcome{Verdict: breaker.Failure})
	require.Equal(t, breaker.Open, b.State())
}

func TestPushOnAServer(t *testing.T) {
	addr := server(t)
	slow := func(s *breaker.Sharing) { s.Refresh = time.Hour } // only a push can tell
	a, b := join(t, "a", addr, true, slow), join(t, "b", addr, true, slow)
	use(t, a, b)
	time.Sleep(300 * time.Millisecond) // a real server takes up the subscriptions
	a.fails(t)
	soon(t, "b hears of it", b.is(breaker.Open))
}
