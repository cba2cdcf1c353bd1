package grpcmw_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
)

// D060: a method that is not known to be a read has its error, whatever the cache
// holds, and fills nothing.
func TestD060_AWriteIsNeverAnsweredFromTheCache(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newStore(t)
		st := forAll()
		st.Store = store
		o := staleOrigin(t, st, parrot)
		_, _, err := o.call(t.Context(), writeMethod, "x")
		require.NoError(t, err)
		require.Zero(t, store.Len())
		_, _, err = o.call(t.Context(), readMethod, "x")
		require.NoError(t, err)
		require.Equal(t, 1, store.Len())
		for _, b := range o.kit.Breakers() {
			b.ForceOpen("the test asks for it")
		}
		got, header, err := o.call(t.Context(), readMethod, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
		require.True(t, isStale(header))
		_, header, err = o.call(t.Context(), writeMethod, "x")
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.ErrorContains(t, err, "the call was not sent; nothing was stored or pretended")
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Nil(t, header)
		_, _, err = o.call(t.Context(), readMethod, "x", grpcmw.WithOverride(holdfast.Override{Safety: call.Unsafe}))
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// D061, D068, F4: the reply says that it is stale and how old; it is not made young
// by being given, and has an end.
func TestD068_TheAgeIsToldAndHasAnEnd(t *testing.T) {
	for _, p := range []*retry.Policy{retry.Off(), {MaxAttempts: 2, Hedge: retry.Hedge{Delay: time.Second}}} {
		bubble(t, func(t *testing.T) {
			st := forAll()
			st.Fresh, st.MaxStale = 10*time.Second, time.Minute
			var version atomic.Int64
			o := staleOrigin(t, st, func(s grpc.ServerStream) error {
				_ = s.SetHeader(metadata.Pairs("x", "y"))
				return say("v" + string(rune('0'+version.Load())))(s)
			})
			ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Retry: p})
			_, header, err := o.call(ctx, readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, []string{"y"}, header["x"])
			require.Empty(t, header["cache-status"])
			begin := time.Now()
			o.down.Store(true)
			for _, age := range []string{"0", "30", "59"} {
				seconds, _ := time.ParseDuration(age + "s")
				time.Sleep(time.Until(begin.Add(seconds)))
				var trailer metadata.MD
				var from peer.Peer
				got, header, err := o.call(ctx, readMethod, "x", grpc.Trailer(&trailer), grpc.Peer(&from))
				require.NoError(t, err)
				require.Equal(t, "v0", got)
				ttl := map[string]string{"0": "10", "30": "-20", "59": "-49"}[age]
				require.Equal(t, metadata.Pairs("age", age, "cache-status", "holdfast; hit; ttl="+ttl+"; detail=unavailable"), header)
				require.Empty(t, trailer)
				require.Nil(t, from.Addr, "nobody has sent it")
				told := o.told[len(o.told)-1]
				require.Equal(t, fallback.KindStale, told.Kind)
				require.InDelta(t, seconds, told.Age, float64(time.Second)) // a back-off may be part of it
			}
			time.Sleep(time.Second)
			got, _, err := o.call(ctx, readMethod, "x")
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Empty(t, got)

			version.Store(1)
			o.down.Store(false)
			got, header, err = o.call(ctx, readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, "v1", got)
			require.False(t, isStale(header))
			o.down.Store(true)
			got, _, err = o.call(ctx, readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, "v1", got)
		})
	}
}

// D063: the server's own answer comes back unchanged, and takes the place of a
// copy: what is forbidden or gone by now must not come back. What the server
// forbids to store is not stored.
func TestD063_AnAnswerOfTheServersTakesTheCopysPlace(t *testing.T) {
	for name, answer := range map[string]hit{
		"not found":        fail(codes.NotFound),
		"permission":       fail(codes.PermissionDenied),
		"unauthenticated":  fail(codes.Unauthenticated),
		"invalid argument": fail(codes.InvalidArgument),
		"no-store":         withHeader("cache-control", "no-store"),
		"private":          withHeader("cache-control", "max-age=5, private"),
		"broken":           withHeader("cache-control", `private="`),
		"stale elsewhere":  withHeader("cache-status", "holdfast; hit; ttl=-5"),
	} {
		bubble(t, func(t *testing.T) {
			var other atomic.Bool
			o := staleOrigin(t, forAll(), func(s grpc.ServerStream) error {
				if other.Load() {
					return answer(s)
				}
				return parrot(s)
			})
			_, _, err := o.call(t.Context(), readMethod, "x")
			require.NoError(t, err, name)
			o.down.Store(true)
			_, header, err := o.call(t.Context(), readMethod, "x")
			require.NoError(t, err)
			require.True(t, isStale(header))
			o.down.Store(false)
			other.Store(true)
			_, _, own := o.call(t.Context(), readMethod, "x")
			require.Len(t, o.told, 1)
			if own != nil {
				require.Equal(t, "as scripted", status.Convert(own).Message())
			}
			o.down.Store(true)
			got, _, err := o.call(t.Context(), readMethod, "x")
			requireDown(t, got, err)
		})
	}
}

// D064, F5: a computed answer knows the failure, comes after the stale one, and
// is marked; the failure of both leaves the primary's status.
func TestD064_StaleFirstThenComputed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := staleOrigin(t, forAll(), parrot)
		store := newStore(t)
		var seen []fallback.Failure
		p := &fallback.Policy{
			Stale: &fallback.Stale{Store: store, Identity: fallback.SharedByAll},
			Answer: func(_ context.Context, f fallback.Failure) (any, error) {
				seen = append(seen, f)
				if f.Info.Resource == "none" {
					return nil, context.Canceled
				}
				return wrapperspb.String("computed"), nil
			},
		}
		ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Fallback: p})
		o.down.Store(true)
		got, header, err := o.call(ctx, readMethod, "x")
		require.NoError(t, err)
		require.Equal(t, "computed", got)
		require.Equal(t, metadata.Pairs("cache-status", "holdfast; fwd=miss; detail=computed-for-unavailable"), header)
		require.Len(t, seen, 1)
		require.Equal(t, call.Unavailable, seen[0].Class)
		require.Equal(t, readMethod, seen[0].Info.Method)
		require.Equal(t, int(codes.Unavailable), seen[0].Code)
		require.Equal(t, 1, seen[0].Attempts)
		require.Equal(t, "down", status.Convert(seen[0].Err).Message())
		require.Zero(t, store.Len(), "D061")

		o.down.Store(false)
		_, _, err = o.call(ctx, readMethod, "x")
		require.NoError(t, err)
		o.down.Store(true)
		got, header, err = o.call(ctx, readMethod, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
		require.True(t, isStale(header))
		require.Len(t, seen, 1)

		_, _, err = o.call(holdfast.WithResource(ctx, "none"), readMethod, "x")
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, codes.Unavailable, status.Code(err))
		kinds := map[fallback.Kind]int{}
		for _, f := range o.told {
			kinds[f.Kind]++
		}
		require.Equal(t, map[fallback.Kind]int{fallback.KindComputed: 2, fallback.KindStale: 1}, kinds)
		require.ErrorIs(t, o.told[2].Err, context.Canceled)
	})
}

// Replies are stored by value: each caller's copy is his own.
func TestEachReaderHasACopyOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		want, err := structpb.NewStruct(map[string]any{"list": []any{"a", "b"}, "n": 1.0})
		require.NoError(t, err)
		o := staleOrigin(t, forAll(), func(s grpc.ServerStream) error {
			if err := s.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				return err
			}
			return s.SendMsg(want)
		})
		read := func() (*structpb.Struct, error) {
			reply := &structpb.Struct{}
			return reply, o.cc.Invoke(t.Context(), readMethod, wrapperspb.String("x"), reply)
		}
		first, err := read()
		require.NoError(t, err)
		clear(first.Fields) // it was stored before
		o.down.Store(true)
		done := make(chan error, 20)
		for range cap(done) {
			go func() {
				reply, err := read()
				if err == nil && !proto.Equal(want, reply) {
					err = context.Canceled
				}
				reply.Fields["list"].GetListValue().Values[0] = structpb.NewStringValue("mine")
				clear(reply.Fields)
				done <- err
			}()
		}
		for range cap(done) {
			require.NoError(t, <-done)
		}
	})
}

// F3: behind an interceptor that drops the call options nobody sees what the server
// says of its reply, and behind one that answers by itself there is no server: neither
// is kept, and what was kept before goes.
func TestF3_AReplyOfWhichNothingIsKnownIsNotKept(t *testing.T) {
	for _, answers := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			blind := false
			st := forAll()
			st.Store = newStore(t)
			o := staleOrigin(t, st, parrot)
			cc := o.Dial(append(grpcmw.DialOptions(o.kit), grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				switch {
				case blind && answers:
					proto.Merge(reply.(proto.Message), wrapperspb.String("made up"))
					return nil
				case blind:
					opts = nil
				}
				return invoker(ctx, method, req, reply, cc, opts...)
			}))...)
			o.cc = cc
			_, _, err := o.call(t.Context(), readMethod, "x")
			require.NoError(t, err)
			o.down.Store(true)
			_, md, err := o.call(t.Context(), readMethod, "x")
			require.NoError(t, err)
			require.True(t, isStale(md))
			o.down.Store(false)
			blind = true
			_, _, err = o.call(t.Context(), readMethod, "x")
			require.NoError(t, err)
			blind = false
			o.down.Store(true)
			_, _, err = o.call(t.Context(), readMethod, "x")
			require.Equal(t, codes.Unavailable, status.Code(err))
		})
	}
}

// F3: so does a reply that was asked for before another one's refusal.
func TestF3_AReplyUnderWayDuringARemovalIsNotKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var n atomic.Int32
		o := staleOrigin(t, forAll(), func(s grpc.ServerStream) error {
			if n.Add(1) == 2 {
				return status.Error(codes.NotFound, "gone by now")
			}
			time.Sleep(50 * time.Millisecond)
			return parrot(s)
		})
		over := make(chan error)
		go func() {
			_, _, err := o.call(t.Context(), readMethod, "x")
			over <- err
		}()
		time.Sleep(20 * time.Millisecond)
		_, _, err := o.call(t.Context(), readMethod, "x")
		require.Equal(t, codes.NotFound, status.Code(err))
		require.NoError(t, <-over)
		o.down.Store(true)
		_, _, err = o.call(t.Context(), readMethod, "x")
		require.Equal(t, codes.Unavailable, status.Code(err))
	})
}

// O1: what becomes of a fallback is told before the end of its call, whichever part of
// the policy has answered.
func TestO1_AFallbackIsToldBeforeTheEndOfItsRPC(t *testing.T) {
	for _, computed := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			var seen []string
			st := forAll()
			o := staleOrigin(t, st, parrot)
			if computed {
				p := with(oneAttempt)
				p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return wrapperspb.String("computed"), nil }}
				require.NoError(t, o.kit.Update(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{readMethod: {Safety: call.ReadOnly}}}))
			} else {
				_, _, err := o.call(t.Context(), readMethod, "x")
				require.NoError(t, err)
			}
			o.kit.Attach(holdfast.Hooks{
				Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
					return nil, func(holdfast.CallEnd) { seen = append(seen, "call") }
				},
				Returned: func(context.Context, holdfast.Returned) { seen = append(seen, "returned") },
				Fallback: func(context.Context, holdfast.Fallback) { seen = append(seen, "fallback") },
			})
			o.down.Store(true)
			_, _, err := o.call(t.Context(), readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, []string{"fallback", "returned", "call"}, seen)
		})
	}
}
