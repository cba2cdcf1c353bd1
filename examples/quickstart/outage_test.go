package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/examples/internal/shop"
	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
	"github.com/holdfast-go/holdfast/retry"
)

// The wires in memory, for the same clients and policies.

func memGRPC(t *testing.T) starter {
	return func(kit *holdfast.Kit) (*subject, error) {
		options, err := dialOptions(kit)
		if err != nil {
			return nil, err
		}
		server := shop.NewGRPC(shop.NewCatalog())
		_, conn := memgrpc.Start(t, func(r grpc.ServiceRegistrar) { shopv1.RegisterCatalogServer(r, server) }, options...)
		return &subject{&server.Gate, overGRPC(conn), func() {}}, nil
	}
}

func memHTTP(t *testing.T) starter {
	return func(kit *holdfast.Kit) (*subject, error) {
		server := shop.NewHTTP(shop.NewCatalog())
		wire := memnet.Start(t, memnet.HTTP1, server)
		base, err := transport(wire.Transport, kit)
		if err != nil {
			return nil, err
		}
		client := &http.Client{Transport: base, Timeout: callTimeout}
		return &subject{&server.Gate, overHTTP(client, wire.URL), func() {}}, nil
	}
}

func kitFor(t *testing.T, wire string) *holdfast.Kit {
	t.Helper()
	kits, err := bothKits()
	require.NoError(t, err)
	return kits[wire]
}

// What the program promises of the kit, in virtual time.
func TestTheKitKeepsItsPromise(t *testing.T) {
	p := short
	p.think *= 2 // half the calls, to be kind to the race detector
	p.healthy, p.healed = 100*time.Millisecond, 1300*time.Millisecond
	for wire, start := range map[string]func(*testing.T) starter{"http": memHTTP, "grpc": memGRPC} {
		t.Run(wire, func(t *testing.T) {
			var bare, kit figures
			synctest.Test(t, func(t *testing.T) {
				c := newCourse(p)
				require.NoError(t, c.run(t.Context(), start(t), nil))
				bare = c.figures()
			})
			var sound []sample
			synctest.Test(t, func(t *testing.T) {
				c := newCourse(p)
				require.NoError(t, c.run(t.Context(), start(t), kitFor(t, wire)))
				kit = c.figures()
				for _, s := range c.samples {
					if s.end < c.silenced && s.outcome != ok {
						sound = append(sound, s)
					}
				}
			})
			require.Empty(t, sound, "the kit is in nobody's way while the server is well")
			require.GreaterOrEqual(t, bare.OutageHits, 6*p.workers, "each worker runs into one limit after the other")
			require.LessOrEqual(t, 10*kit.OutageHits, bare.OutageHits)
			require.Less(t, kit.OutageP99, 100.0)
			require.GreaterOrEqual(t, bare.OutageP50, ms(callTimeout))
			require.NotNil(t, bare.Recovered)
			require.NotNil(t, kit.Recovered)
			require.LessOrEqual(t, *kit.Recovered, 700.0, "the longest cooldown with its jitter, and three probes")
			require.LessOrEqual(t, *kit.FirstOK, *kit.Recovered)
			for _, f := range []figures{bare, kit} {
				require.Equal(t, f.Calls, f.OK+f.Failed+f.Refused)
			}
			require.Zero(t, bare.Refused)
		})
	}
}

func TestARunThatIsInterruptedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), short.healthy+time.Second)
		defer cancel()
		began := time.Now()
		err := newCourse(short).run(ctx, memHTTP(t), kitFor(t, "http"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, short.healthy+time.Second, time.Since(began))
	})
}

func TestAServerThatIsNotThereIsAnError(t *testing.T) {
	boom := errors.New("no port is free")
	err := newCourse(short).run(t.Context(), func(*holdfast.Kit) (*subject, error) { return nil, boom }, nil)
	require.ErrorIs(t, err, boom)

	stopped := false
	dead := &subject{new(shop.Gate), func(context.Context, request) error { return boom }, func() { stopped = true }}
	err = newCourse(short).run(t.Context(), func(*holdfast.Kit) (*subject, error) { return dead, nil }, nil)
	require.ErrorIs(t, err, boom)
	require.True(t, stopped)
}

func TestOutcomes(t *testing.T) {
	failure := errors.New("reset by peer")
	for _, step := range []struct {
		err  error
		want outcome
	}{
		{nil, ok},
		{failure, failed},
		{context.DeadlineExceeded, failed},
		{fmt.Errorf("Get: %w", breaker.ErrOpen), refused},
		{fmt.Errorf("Get: %w", bulkhead.ErrFull), refused},
		// The circuit opened after the server had been tried.
		{&retry.StoppedError{Reason: breaker.ErrOpen, Attempts: 1, Last: failure}, failed},
	} {
		require.Equal(t, step.want, outcomeOf(step.err), "%v", step.err)
	}
}

func TestTheMix(t *testing.T) {
	var n [3]int
	for i := range 100 {
		n[choose(i)]++
	}
	require.Equal(t, [3]int{80, 15, 5}, n)
}
