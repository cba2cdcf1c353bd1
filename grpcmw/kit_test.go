package grpcmw_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// Several connections share a kit: its policies, and, where their targets are one,
// its breaker. Another target has its own.
func TestConnectionsShareAKitByTarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		k := newKit(t, with(oneAttempt))
		first, second := s.connect(t, k), s.connect(t, k)
		named, err := grpcmw.New(k, grpcmw.WithTarget("replica"))
		require.NoError(t, err)
		third := s.Dial(named.DialOptions()...)
		for range 5 {
			_, err := invoke(t.Context(), first)
			require.Equal(t, codes.Unavailable, status.Code(err))
		}
		_, err = invoke(t.Context(), second)
		require.ErrorIs(t, err, breaker.ErrOpen)
		_, err = invoke(t.Context(), third)
		require.NotErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, []string{first.Target(), "replica"}, slices.Sorted(maps.Keys(maps.Collect(k.Breakers()))))
	})
}

// B14: the resource in the context is the part of the target whose breaker is
// asked first.
func TestB14_AResourceHasItsOwnBreaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say("ok"), say("ok"), say("ok"), say("ok"), say("ok"), say("ok"), fail(codes.Unavailable))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			oneAttempt(p)
			p.Breaker.Scope, p.Breaker.Window.Calls = breaker.TwoLevel, 20
		})))
		small, large := holdfast.WithResource(t.Context(), "small"), holdfast.WithResource(t.Context(), "large")
		for range 6 {
			_, err := invoke(large, cc)
			require.NoError(t, err)
		}
		for range 5 {
			_, err := invoke(small, cc)
			require.Equal(t, codes.Unavailable, status.Code(err))
		}
		_, err := invoke(small, cc)
		require.ErrorContains(t, err, "|small is open")
		_, err = invoke(large, cc)
		require.NotErrorIs(t, err, breaker.ErrOpen)
	})
}

// D004: a probe that the server answers with the client's own fault is a sign of
// life, and one that its caller gives up is nothing: half-open is never stuck.
func TestD004_NoEndOfAProbeIsStuck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Internal), fail(codes.Internal), fail(codes.Internal), fail(codes.Internal), fail(codes.Internal),
			silent, silent, silent, fail(codes.NotFound), say("ok"))
		k := newKit(t, with(oneAttempt))
		cc := s.connect(t, k)
		state := func() breaker.State { return breakerOf(t, k, cc.Target()).State() }
		for range 5 {
			_, err := invoke(t.Context(), cc)
			require.Equal(t, codes.Internal, status.Code(err))
		}
		time.Sleep(time.Second)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Millisecond, cancel)
			_, err := invoke(ctx, cc)
			require.Equal(t, codes.Canceled, status.Code(err))
			require.Equal(t, breaker.HalfOpen, state())
		}
		_, err := invoke(t.Context(), cc)
		require.Equal(t, codes.NotFound, status.Code(err))
		require.Equal(t, breaker.Closed, state())
		got, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		require.Equal(t, "ok", got)
	})
}

// D031: no attempt starts once the caller's deadline is over: what the interceptor
// sent is what the server saw.
func TestD031_NoAttemptStartsTooLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, silent)
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Timeout.Attempt = 0
			p.Retry.MaxAttempts = 10
		})))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := invoke(ctx, cc)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.Equal(t, 100*time.Millisecond, time.Since(begin))
		require.Equal(t, 1, s.hitCount())
	})
}

// D060, D063: a read that failed has the fallback's answer, a client's fault and a
// write have their own end.
func TestD060_OnlyAReadThatFailedIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := 0
		stale := &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) {
			asked++
			return wrapperspb.String("stale"), nil
		}}
		s := play(t, fail(codes.NotFound), fail(codes.InvalidArgument), fail(codes.Internal))
		read := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { readOnly(p); oneAttempt(p); p.Fallback = stale })))
		for _, code := range []codes.Code{codes.NotFound, codes.InvalidArgument} {
			_, err := invoke(t.Context(), read)
			require.Equal(t, code, status.Code(err))
		}
		require.Zero(t, asked)
		got, err := invoke(t.Context(), read)
		require.NoError(t, err)
		require.Equal(t, "stale", got)

		write := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { oneAttempt(p); p.Fallback = stale })))
		got, err = invoke(t.Context(), write)
		require.Equal(t, codes.Internal, status.Code(err))
		require.Empty(t, got)
		require.Equal(t, 1, asked)
	})
}

// The caller's OnFinish is called once, at the end, also when that is a panic.
func TestOnFinishIsCalledWhenTheCallPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say("never"))
		cc := s.connect(t, newKit(t, with(readOnly)), grpc.WithChainUnaryInterceptor(
			func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
				panic("boom")
			}))
		var ends []codes.Code
		require.PanicsWithValue(t, "boom", func() {
			_, _ = invoke(t.Context(), cc, grpc.OnFinish(func(err error) { ends = append(ends, status.Code(err)) }))
		})
		require.Equal(t, []codes.Code{codes.Internal}, ends)
	})
}
