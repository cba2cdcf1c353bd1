package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// told returns what the server was told in one key of the metadata, hit by hit.
func (s *script) told(key string) (values [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, md := range s.incoming {
		values = append(values, md.Get(key))
	}
	return values
}

func withKey(p *holdfast.Policy) {
	p.Retry.IdempotencyKey = true
	p.Breaker = breaker.Off()
}

// R9: one key per call, the same on every attempt; the caller's own wins (D037).
func TestD037_OneKeyPerCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable), fail(codes.Unavailable), say("done"), fail(codes.Unavailable), say("done"))
		cc := s.connect(t, newKit(t, with(withKey)))
		_, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		_, err = invoke(t.Context(), cc)
		require.NoError(t, err)
		keys := s.told("idempotency-key")
		require.Len(t, keys, 5)
		require.Len(t, keys[0], 1)
		require.NotEmpty(t, keys[0][0])
		require.Equal(t, [][]string{keys[0], keys[0], keys[0], keys[3], keys[3]}, keys)
		require.NotEqual(t, keys[0], keys[3], "each call has its own")
	})
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		cc := s.connect(t, newKit(t, with(withKey)))
		ctx := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "mine", "other", "kept")
		_, err := invoke(ctx, cc)
		require.Error(t, err)
		require.Equal(t, [][]string{{"mine"}, {"mine"}, {"mine"}}, s.told("idempotency-key"))
		require.Equal(t, [][]string{{"kept"}, {"kept"}, {"kept"}}, s.told("other"))
		md, _ := metadata.FromOutgoingContext(ctx)
		require.Equal(t, metadata.Pairs("idempotency-key", "mine", "other", "kept"), md, "the caller's own is not changed")

		s = play(t, say("x"))
		_, err = invoke(metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", ""), s.connect(t, newKit(t, with(withKey))))
		require.NoError(t, err)
		require.Len(t, s.told("idempotency-key")[0], 1, "an empty one is none, and is replaced")
		require.NotEmpty(t, s.told("idempotency-key")[0][0])
	})
	bubble(t, func(t *testing.T) { // a read has no need of one; a stream has one too
		s := play(t, say("x"))
		_, err := invoke(t.Context(), s.connect(t, newKit(t, with(func(p *holdfast.Policy) { withKey(p); readOnly(p) }))))
		require.NoError(t, err)
		require.Equal(t, [][]string{nil}, s.told("idempotency-key"))

		s = play(t, messages(1, 0, nil))
		st, err := open(t.Context(), s.connect(t, newKit(t, with(withKey))), serverStream)
		require.NoError(t, err)
		_, err = readAll(st)
		require.NoError(t, err)
		require.NotEmpty(t, s.told("idempotency-key")[0])
	})
}

// R11: the hook sees the attempt's own copy, and the number goes out (D049).
func TestD049_EachAttemptIsSignedAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable), fail(codes.Unavailable), say("x"))
		cc := s.Dial(grpcmw.DialOptions(newKit(t, with(withKey)), grpcmw.WithAttemptHook(
			func(ctx context.Context, name string, attempt int, md metadata.MD) error {
				require.Equal(t, method, name)
				require.NoError(t, ctx.Err())
				md.Append("sig", fmt.Sprint(attempt, md.Get("idempotency-key"), md.Get("grpc-previous-rpc-attempts")))
				return nil
			}))...)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "grpc-previous-rpc-attempts", "9", "Own", "1")
		_, err := invoke(ctx, cc)
		require.NoError(t, err)
		key := s.told("idempotency-key")[0][0]
		require.Equal(t, [][]string{{"1 [" + key + "] [9]"}, {"2 [" + key + "] [1]"}, {"3 [" + key + "] [2]"}}, s.told("sig"))
		require.Equal(t, [][]string{{"9"}, {"1"}, {"2"}}, s.told("grpc-previous-rpc-attempts"), "an older value is dropped")
		require.Equal(t, [][]string{{"1"}, {"1"}, {"1"}}, s.told("own"))
		md, _ := metadata.FromOutgoingContext(ctx)
		require.Len(t, md, 2, "the caller's own is not changed")
	})
}

// R11: without anything to add the number is still told on repeats, by default.
func TestR11_TheNumberGoesOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		_, err := invoke(t.Context(), s.connect(t, newKit(t, with(readOnly))))
		require.Error(t, err)
		require.Equal(t, [][]string{nil, {"1"}, {"2"}}, s.told("grpc-previous-rpc-attempts"))
	})
}

// A hook that cannot sign ends the call: nothing was sent, it says nothing of the
// server, and the error has a status.
func TestAHookThatFailsEndsTheCall(t *testing.T) {
	unsigned := errors.New("no credentials")
	denied := status.Error(codes.Unauthenticated, "no credentials")
	for _, tc := range []struct {
		err  error
		code codes.Code
	}{{unsigned, codes.Internal}, {denied, codes.Unauthenticated}} {
		bubble(t, func(t *testing.T) {
			s := play(t, say("x"))
			cc := s.Dial(grpcmw.DialOptions(newKit(t, with(readOnly)), grpcmw.WithAttemptHook(
				func(context.Context, string, int, metadata.MD) error { return tc.err }))...)
			for range 10 { // neither the breaker nor the bulkhead takes offence
				_, err := invoke(t.Context(), cc)
				require.ErrorIs(t, err, tc.err)
				require.Equal(t, tc.code, status.Code(err))
				_, err = open(t.Context(), cc, serverStream)
				require.ErrorIs(t, err, tc.err)
				require.Equal(t, tc.code, status.Code(err))
			}
			require.Zero(t, s.hitCount())
		})
	}
}

// A hook that panics is a failure, leaks nothing, and goes on.
func TestB1_AHookThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say("x"))
		k := newKit(t, with(func(p *holdfast.Policy) { readOnly(p); single(p) }))
		cc := s.Dial(grpcmw.DialOptions(k, grpcmw.WithAttemptHook(
			func(context.Context, string, int, metadata.MD) error { panic("a bug") }))...)
		for i := range 6 {
			if i == 5 {
				_, err := invoke(t.Context(), cc)
				require.ErrorIs(t, err, breaker.ErrOpen)
				break
			}
			require.PanicsWithValue(t, "a bug", func() {
				if i%2 == 0 {
					_, _ = invoke(t.Context(), cc)
				} else {
					_, _ = open(t.Context(), cc, serverStream)
				}
			})
		}
	})
}

// D045: a key of the server's choice forbids the repeat, in header or trailer.
func TestD045_MetadataForbidsTheRepeat(t *testing.T) {
	for name, refuse := range map[string]hit{
		"in the trailer": func(s grpc.ServerStream) error {
			s.SetTrailer(metadata.Pairs("x-overloaded", ""))
			return status.Error(codes.Unavailable, "overloaded")
		},
		"in the header": func(s grpc.ServerStream) error {
			_ = s.SendHeader(metadata.Pairs("x-overloaded", ""))
			return status.Error(codes.Unavailable, "overloaded")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for hits, opts := range map[int][]grpcmw.Option{3: nil, 1: {grpcmw.WithNoRetryMetadata("X-Overloaded")}} {
				bubble(t, func(t *testing.T) {
					s := play(t, refuse)
					cc := s.Dial(grpcmw.DialOptions(newKit(t, with(readOnly)), opts...)...)
					_, err := invoke(t.Context(), cc)
					require.Equal(t, codes.Unavailable, status.Code(err))
					require.Equal(t, hits, s.hitCount())
				})
			}
		})
	}
	_, err := grpcmw.New(newKit(t, policy()), grpcmw.WithNoRetryMetadata("a b"))
	require.EqualError(t, err, `grpcmw: WithNoRetryMetadata = "a b": is no metadata key`)
	_, err = grpcmw.New(newKit(t, policy()), grpcmw.WithAttemptHook(nil))
	require.EqualError(t, err, "grpcmw: WithAttemptHook: must not be nil")
}

// D044, R8: one kit behind another does not retry; and eight attempts are eight.
func TestD044_LayersDoNotMultiply(t *testing.T) {
	for name, tc := range map[string]struct {
		even bool
		hits int
	}{"by default": {false, 3}, "told to": {true, 9}} {
		for kind, do := range map[string]func(context.Context, *grpc.ClientConn) error{
			"unary":  func(ctx context.Context, cc *grpc.ClientConn) error { _, err := invoke(ctx, cc); return err },
			"stream": func(ctx context.Context, cc *grpc.ClientConn) error { return stream(ctx, cc, serverStream) },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := play(t, fail(codes.Unavailable))
					p := with(func(p *holdfast.Policy) { readOnly(p); p.Breaker = breaker.Off() })
					inner := p
					retries := *p.Retry
					retries.EvenNested = tc.even
					inner.Retry = &retries
					cc := s.Dial(append(grpcmw.DialOptions(newKit(t, p)), grpcmw.DialOptions(newKit(t, inner))...)...)
					require.Equal(t, codes.Unavailable, status.Code(do(t.Context(), cc)))
					require.Equal(t, tc.hits, s.hitCount())
				})
			})
		}
	}
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Breaker = breaker.Off()
			p.Retry.MaxAttempts = 8
		})))
		_, err := invoke(t.Context(), cc)
		require.Error(t, err)
		require.Equal(t, 8, s.hitCount())
	})
}
