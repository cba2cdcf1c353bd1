package grpcmw

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// A proxy may be handed any number of names: those beyond the bound are looked up
// each time, and answered alike.
func TestTheNumberOfKnownRoutesIsBounded(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"known.S": {Safety: call.ReadOnly}}})
	require.NoError(t, err)
	i, err := New(k)
	require.NoError(t, err)

	byDefault, byService := i.binding.Table().Default(), i.binding.Table().Method("known.S")
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for n := range maxRoutes / 2 {
				name := strconv.Itoa(n + w*100)
				if r := i.find("/made.up.S/M" + name); r.policy != byDefault || r.name != "/made.up.S/M"+name {
					t.Errorf("wrong route %+v", r)
				}
				if r := i.find("known.S/M" + name); r.policy != byService || r.name != "/known.S/M"+name {
					t.Errorf("wrong route %+v", r)
				}
			}
		})
	}
	workers.Wait()
	require.Len(t, *i.binding.Table().Routes().(*routes).known.Load(), maxRoutes)
}

// A method's entry and its descriptor are looked up once: later calls find what is
// known without the registry, which allocates.
func TestG2_AMethodIsLookedUpOnce(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{})
	require.NoError(t, err)
	i, err := New(k)
	require.NoError(t, err)
	const name = "/grpc.testing.TestService/EmptyCall"
	first := i.find(name)
	require.Zero(t, testing.AllocsPerRun(100, func() { i.find(name) }))
	require.Same(t, first, i.find(name))
	require.NotZero(t, testing.AllocsPerRun(100, func() { look(i.binding.Table(), name) }), "or the test shows nothing")
}
