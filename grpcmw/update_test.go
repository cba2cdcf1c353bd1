package grpcmw_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
)

// C2: connections find an update at once, methods that were called before
// included; the breaker they share stays open through it.
func TestC2_ConnectionsFindAnUpdateAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		p := with(oneAttempt)
		k := newKit(t, p)
		cc := s.connect(t, k)
		hits := func() int {
			before := s.hitCount()
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Unavailable, status.Code(err))
			return s.hitCount() - before
		}
		require.Equal(t, 1, hits())
		own := p
		own.Safety, own.Breaker, own.Retry = call.Idempotent, breaker.Off(), &retry.Policy{MaxAttempts: 3, Backoff: retry.NoWait()}
		name := method[1:]
		require.NoError(t, k.Update(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{name: own}}))
		require.Equal(t, 3, hits(), "an entry appears")
		require.NoError(t, k.Update(holdfast.Config{Default: p}))
		require.Equal(t, 1, hits(), "and vanishes")
		for range 3 {
			require.Equal(t, 1, hits())
		}
		require.NoError(t, k.Update(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{name: {Retry: retry.Off()}}}))
		require.Equal(t, 0, hits(), "open, and still so")
	})
}

// C1: the name check of an adapter in use holds for updates; the table that was
// in force stays.
func TestC1_AnUpdateChecksNames(t *testing.T) {
	k := newKit(t, holdfast.Policy{})
	bad := holdfast.Config{Methods: map[string]holdfast.Policy{"*": {}, "pkg.S/M": {Retry: retry.Off()}, "/pkg.S/M": {}}}
	_, err := grpcmw.New(k)
	require.NoError(t, err)
	err = k.Update(bad)
	require.ErrorContains(t, err, `Methods["*"]: is no gRPC name`)
	require.ErrorContains(t, err, `Methods["pkg.S/M"]: names the same as Methods["/pkg.S/M"]`)
	e, err := k.Explain("/pkg.S/M")
	require.NoError(t, err)
	require.Equal(t, "Default", e.Entry)
}
