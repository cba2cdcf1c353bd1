package grpcmw_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func TestAUnaryCallIsRepeatedUntilItSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable), fail(codes.Internal), say("third"))
		cc := s.connect(t, newKit(t, with(readOnly)))
		got, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		require.Equal(t, "third", got)
		require.Equal(t, 3, s.hitCount())
	})
}

// What repeats depends on what is declared and on what was sent.
func TestR2_WhatIsRepeated(t *testing.T) {
	key := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "Idempotency-Key", "order-7")
	}
	for name, c := range map[string]struct {
		safety call.Safety
		ctx    func(context.Context) context.Context
		answer hit
		hits   int
	}{
		"nothing declared":  {call.SafetyUnknown, nil, fail(codes.Unavailable), 1},
		"unsafe":            {call.Unsafe, nil, fail(codes.Unavailable), 1},
		"unsafe, silent":    {call.Unsafe, nil, silent, 1},
		"unsafe with a key": {call.Unsafe, key, fail(codes.Unavailable), 3},
		"unsafe with an empty key": {call.Unsafe, func(ctx context.Context) context.Context {
			return metadata.AppendToOutgoingContext(ctx, "idempotency-key", "")
		}, fail(codes.Unavailable), 1},
		"idempotent":                  {call.Idempotent, nil, fail(codes.Unavailable), 3},
		"read only, limit":            {call.ReadOnly, nil, silent, 3},
		"read only, deadline":         {call.ReadOnly, nil, fail(codes.DeadlineExceeded), 3},
		"read only, unknown":          {call.ReadOnly, nil, fail(codes.Unknown), 3},
		"read only, throttled":        {call.ReadOnly, nil, fail(codes.ResourceExhausted), 3},
		"read only, data loss":        {call.ReadOnly, nil, fail(codes.DataLoss), 1},
		"read only, client fault":     {call.ReadOnly, nil, fail(codes.NotFound), 1},
		"read only, aborted":          {call.ReadOnly, nil, fail(codes.Aborted), 1},
		"read only, server cancelled": {call.ReadOnly, nil, fail(codes.Canceled), 1},
		"read only, no such code":     {call.ReadOnly, nil, fail(codes.Code(77)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := play(t, c.answer)
				cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) { p.Safety = c.safety })))
				ctx := t.Context()
				if c.ctx != nil {
					ctx = c.ctx(ctx)
				}
				_, err := invoke(ctx, cc)
				require.Error(t, err)
				require.Equal(t, c.hits, s.hitCount())
			})
		})
	}
}

// A dial that is refused sends nothing, so even a call of which nothing is
// declared is repeated.
func TestR2_ARefusedDialIsRepeatedForAnyMethod(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say("at last"))
		var results []call.Result
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			// gRPC's own back-off after a refused dial is a second.
			p.Retry.Backoff = retry.Backoff{Base: 1500 * time.Millisecond, Jitter: retry.NoJitter}
			p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
				results = append(results, r)
				return r
			}
		})))
		s.Wire.Refuse(true)
		time.AfterFunc(time.Second, func() { s.Wire.Refuse(false) })
		got, err := invoke(t.Context(), cc)
		require.NoError(t, err)
		require.Equal(t, "at last", got)
		require.Equal(t, 1, s.hitCount())
		require.GreaterOrEqual(t, len(results), 2)
		require.Equal(t, call.OK, results[len(results)-1].Class)
		for _, r := range results[:len(results)-1] { // the channel tells the cached error once or twice
			require.Equal(t, call.Unavailable, r.Class)
			require.True(t, r.NotSent)
		}
	})
}

// An inner interceptor that answers by itself or drops the call options leaves
// the peer empty too; that proves nothing.
func TestR2_AnEmptyPeerIsNoProofIfTheOptionsNeverArrived(t *testing.T) {
	drop := func(ctx context.Context, m string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		return invoker(ctx, m, req, reply, cc)
	}
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		cc := s.connect(t, newKit(t, policy()), grpc.WithChainUnaryInterceptor(drop))
		_, err := invoke(t.Context(), cc)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, 1, s.hitCount())
	})
}

func TestD073_HeadersFirstAndFailureLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		headersFirst := func(s grpc.ServerStream) error {
			if err := s.SendHeader(metadata.Pairs("x", "y")); err != nil {
				return err
			}
			return status.Error(codes.Unavailable, "after the headers")
		}
		s := play(t, headersFirst)
		cc := s.connect(t, newKit(t, with(readOnly)))
		_, err := invoke(t.Context(), cc)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, 3, s.hitCount())
		_, err = invoke(t.Context(), cc) // two more, then the breaker has its five
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, 5, s.hitCount())
	})
}

// A method declared nowhere whose failure comes with the words of an unprocessed
// stream, but from a server: it was sent.
func TestR2_TheWordsOfAnUnprocessedStreamFromAServerAreNoProof(t *testing.T) {
	for _, text := range []string{"the connection is draining", "stream terminated by RST_STREAM with error code: REFUSED_STREAM"} {
		for _, headers := range []bool{false, true} {
			bubble(t, func(t *testing.T) {
				s := play(t, func(ss grpc.ServerStream) error {
					if headers {
						if err := ss.SendHeader(nil); err != nil {
							return err
						}
					}
					return status.Error(codes.Unavailable, text)
				})
				_, err := invoke(t.Context(), s.connect(t, newKit(t, policy())))
				require.Equal(t, codes.Unavailable, status.Code(err))
				require.Equal(t, 1, s.hitCount())
			})
		}
	}
}

func TestD028_AnOpenCircuitIsNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, fail(codes.Unavailable))
		k := newKit(t, with(func(p *holdfast.Policy) {
			p.Safety = call.ReadOnly
			p.Retry.MaxAttempts = 5
			p.Retry.Backoff = retry.Backoff{Base: time.Second, Jitter: retry.NoJitter}
			p.Breaker.Cooldown = time.Minute
			p.Breaker.Window = breaker.Window{Span: 100 * time.Second}
		}))
		cc := s.connect(t, k)
		_, err := invoke(t.Context(), cc) // its five attempts
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, 5, s.hitCount())

		begin := time.Now()
		_, err = invoke(t.Context(), cc)
		require.Zero(t, time.Since(begin))
		require.Equal(t, 5, s.hitCount())
		require.ErrorIs(t, err, breaker.ErrOpen)
		var open *breaker.OpenError
		require.ErrorAs(t, err, &open)
		require.Positive(t, open.RetryAfter())
		var stopped *retry.StoppedError
		require.NotErrorAs(t, err, &stopped)
	})
}

// What the caller's options show is the attempt that decided the call.
func TestTheCallersTargetsShowTheLastAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tagged := func(tag string, then hit) hit {
			return func(ss grpc.ServerStream) error {
				if err := ss.SendHeader(metadata.Pairs("tag", tag)); err != nil {
					return err
				}
				ss.SetTrailer(metadata.Pairs("tag", tag))
				return then(ss)
			}
		}
		s := play(t, tagged("one", fail(codes.Unavailable)), tagged("two", say("")), tagged("three", fail(codes.Unavailable)))
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			p.Safety = call.ReadOnly
			p.Retry.Backoff = retry.Backoff{Base: time.Second, Jitter: retry.NoJitter}
			p.Retry.MaxAttempts = 2
		})))
		var header, trailer metadata.MD
		var from peer.Peer
		opts := []grpc.CallOption{grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from)}
		_, err := invoke(t.Context(), cc, opts...)
		require.NoError(t, err)
		require.Equal(t, []string{"two"}, header["tag"])
		require.Equal(t, []string{"two"}, trailer["tag"])
		require.NotNil(t, from.Addr)

		// The server is gone before the second attempt, which finds nobody: the
		// first one's header must not be taken for its own.
		time.AfterFunc(500*time.Millisecond, func() {
			s.Wire.Refuse(true)
			s.Wire.Reset()
		})
		_, err = invoke(t.Context(), cc, opts...)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Equal(t, 3, s.hitCount())
		require.Empty(t, header)
		require.Empty(t, trailer)
		require.Nil(t, from.Addr)
	})
}

// A server may send a message and fail then: a repeat begins with an empty reply.
func TestAFailedAttemptLeavesNothingInTheReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		half := func(ss grpc.ServerStream) error {
			if err := ss.SendMsg(wrapperspb.String("half")); err != nil {
				return err
			}
			return status.Error(codes.Unavailable, "after the message")
		}
		s := play(t, half, fail(codes.NotFound))
		got, err := invoke(t.Context(), s.connect(t, newKit(t, with(readOnly))))
		require.Equal(t, codes.NotFound, status.Code(err))
		require.Empty(t, got)
	})
}

// Waiting for a connection is not sending, whoever ends the wait.
func TestR2_AWaitForAConnectionSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var results []call.Result
		s := play(t, say("connected"))
		s.Wire.Hang(true)
		time.AfterFunc(150*time.Millisecond, func() { s.Wire.Hang(false) })
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
				results = append(results, r)
				return r
			}
		})))
		got, err := invoke(t.Context(), cc, grpc.WaitForReady(true))
		require.NoError(t, err)
		require.Equal(t, "connected", got)
		require.Len(t, results, 2)
		require.Equal(t, call.TimedOut, results[0].Class)
		require.True(t, results[0].NotSent)
		require.ErrorIs(t, results[0].Err, timeout.ErrExceeded)
		require.Equal(t, call.OK, results[1].Class)
	})
}

// D090: interceptors behind the kit run once per attempt, those before it once
// per call, and one given apart from the chain before all of it.
func TestG4_WhereOtherInterceptorsStand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var order []string
		note := func(name string) grpc.UnaryClientInterceptor {
			return func(ctx context.Context, m string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				order = append(order, name)
				return invoker(ctx, m, req, reply, cc, opts...)
			}
		}
		s := play(t, fail(codes.Unavailable), say(""))
		opts := []grpc.DialOption{grpc.WithChainUnaryInterceptor(note("before"))}
		opts = append(opts, grpcmw.DialOptions(newKit(t, with(readOnly)))...)
		opts = append(opts, grpc.WithChainUnaryInterceptor(note("behind")), grpc.WithUnaryInterceptor(note("apart")))
		_, err := invoke(t.Context(), s.Dial(opts...))
		require.NoError(t, err)
		require.Equal(t, []string{"apart", "before", "behind", "behind"}, order)
	})
}
