package grpcmw_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
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
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
)

const (
	readMethod  = "/test.Service/Read"
	writeMethod = "/test.Service/Write"
)

// origin is a server that can be down: it answers Unavailable then.
type origin struct {
	*script
	kit  *holdfast.Kit
	cc   *grpc.ClientConn
	down atomic.Bool
	mu   sync.Mutex
	told []holdfast.Fallback
}

// staleOrigin starts a server that answers as told, and a connection to it that
// keeps the replies of readMethod.
func staleOrigin(t *testing.T, st fallback.Stale, answer hit, opts ...grpcmw.Option) *origin {
	t.Helper()
	o := &origin{}
	if st.Store == nil {
		st.Store = newStore(t)
	}
	p := with(oneAttempt)
	p.Breaker = &breaker.Config{Consecutive: 1000} // it opens when a test says so
	p.Fallback = &fallback.Policy{Stale: &st}
	var err error
	o.kit, err = holdfast.New(holdfast.Config{
		Default: p,
		Methods: map[string]holdfast.Policy{readMethod: {Safety: call.ReadOnly}},
		Hooks:   holdfast.Hooks{Fallback: o.tell},
	})
	require.NoError(t, err)
	o.script = play(t, func(s grpc.ServerStream) error {
		if o.down.Load() {
			return status.Error(codes.Unavailable, "down")
		}
		return answer(s)
	})
	o.cc = o.Dial(grpcmw.DialOptions(o.kit, opts...)...)
	return o
}

func (o *origin) tell(_ context.Context, f holdfast.Fallback) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, f)
}

func newStore(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.New(16 << 20)
	require.NoError(t, err)
	return store
}

func forAll() fallback.Stale { return fallback.Stale{Identity: fallback.SharedByAll} }

func byUser() fallback.Stale {
	return fallback.Stale{Identity: func(_ context.Context, r fallback.Request) string { return r.Get("Authorization") }}
}

// parrot answers with the request and the caller's authorization.
func parrot(s grpc.ServerStream) error {
	m := new(wrapperspb.StringValue)
	if err := s.RecvMsg(m); err != nil {
		return err
	}
	md, _ := metadata.FromIncomingContext(s.Context())
	return s.SendMsg(wrapperspb.String(m.Value + strings.Join(md["authorization"], "")))
}

func as(ctx context.Context, user string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", user)
}

// call makes an RPC and returns the reply and the header.
func (o *origin) call(ctx context.Context, name, text string, opts ...grpc.CallOption) (string, metadata.MD, error) {
	var header metadata.MD
	reply := new(wrapperspb.StringValue)
	err := o.cc.Invoke(ctx, name, wrapperspb.String(text), reply, append(opts, grpc.Header(&header))...)
	return reply.GetValue(), header, err
}

func isStale(md metadata.MD) bool {
	return strings.HasPrefix(strings.Join(md["cache-status"], ""), "holdfast; hit")
}

// requireDown requires that the server's own error came back, and nothing else.
func requireDown(t *testing.T, got string, err error) {
	t.Helper()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, "down", status.Convert(err).Message())
	require.Empty(t, got)
}

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

// creds are credentials of a call's own.
type creds struct{}

func (creds) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "A"}, nil
}

func (creds) RequireTransportSecurity() bool { return false }

// D062, F3: nobody gets another one's reply.
func TestD062_NoReplyCrossesIdentities(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// Shared by all: who has credentials has no part in the cache.
		for name, who := range map[string]struct {
			ctx  context.Context
			opts []grpc.CallOption
		}{
			"authorization":   {ctx: as(t.Context(), "A")},
			"cookie":          {ctx: metadata.AppendToOutgoingContext(t.Context(), "Cookie", "A")},
			"binary":          {ctx: metadata.AppendToOutgoingContext(t.Context(), "authorization-bin", "A")},
			"per-RPC":         {ctx: t.Context(), opts: []grpc.CallOption{grpc.PerRPCCredentials(creds{})}},
			"other authority": {ctx: t.Context(), opts: []grpc.CallOption{grpc.CallAuthority("other")}},
		} {
			o := staleOrigin(t, forAll(), parrot)
			_, _, err := o.call(who.ctx, readMethod, "x", who.opts...)
			require.NoError(t, err, name)
			o.down.Store(true)
			got, _, err := o.call(t.Context(), readMethod, "x")
			requireDown(t, got, err)
			o.down.Store(false)
			_, _, err = o.call(t.Context(), readMethod, "x")
			require.NoError(t, err)
			o.down.Store(true)
			got, header, err := o.call(t.Context(), readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, "x", got)
			require.True(t, isStale(header))
			if name != "other authority" {
				got, _, err = o.call(who.ctx, readMethod, "x", who.opts...)
				requireDown(t, got, err)
			}
		}

		o := staleOrigin(t, byUser(), parrot)
		for _, user := range []string{"A", "B"} {
			_, _, err := o.call(as(t.Context(), user), readMethod, "x")
			require.NoError(t, err)
		}
		_, _, err := o.call(t.Context(), readMethod, "x")
		require.NoError(t, err)
		o.down.Store(true)
		for _, user := range []string{"A", "B"} {
			got, header, err := o.call(as(t.Context(), user), readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, "x"+user, got)
			require.True(t, isStale(header))
		}
		for _, ctx := range []context.Context{as(t.Context(), "C"), t.Context(), as(as(t.Context(), ""), "A")} {
			got, _, err := o.call(ctx, readMethod, "x")
			requireDown(t, got, err)
		}
		got, _, err := o.call(as(t.Context(), "A"), readMethod, "y")
		requireDown(t, got, err)
	})
}

// What an attempt hook adds is not the caller's own: under SharedByAll such a
// reply is not everybody's.
func TestF3_AHooksCredentialsAreCredentials(t *testing.T) {
	for _, hedged := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			store := newStore(t)
			st := forAll()
			st.Store = store
			sign := true
			o := staleOrigin(t, st, parrot, grpcmw.WithAttemptHook(func(_ context.Context, _ string, _ int, md metadata.MD) error {
				if sign {
					md.Set("authorization", "A")
				}
				return nil
			}))
			ctx := t.Context()
			if hedged {
				ctx = holdfast.WithOverride(ctx, holdfast.Override{Retry: &retry.Policy{MaxAttempts: 2, Hedge: retry.Hedge{Delay: time.Second}}})
			}
			got, _, err := o.call(ctx, readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, "xA", got)
			require.Zero(t, store.Len())
			sign = false
			_, _, err = o.call(ctx, readMethod, "x")
			require.NoError(t, err)
			require.Equal(t, 1, store.Len())
			o.down.Store(true)
			sign = true
			got, _, err = o.call(ctx, readMethod, "x")
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.Empty(t, got)
		})
	}
}

// F3: each connection has its own replies, though policy, interceptors and store
// are shared: their certificates may differ. A scope that is named is shared.
func TestF3_ACacheBelongsToItsConnection(t *testing.T) {
	for _, scoped := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			var opts []grpcmw.Option
			if scoped {
				opts = append(opts, grpcmw.WithCacheScope("ours"))
			}
			o := staleOrigin(t, forAll(), parrot)
			interceptors, err := grpcmw.New(o.kit, opts...)
			require.NoError(t, err)
			a, b := o.Dial(interceptors.DialOptions()...), o.Dial(interceptors.DialOptions()...)
			_, err = invokeMethod(t.Context(), a, readMethod)
			require.NoError(t, err)
			o.down.Store(true)
			got, err := invokeMethod(t.Context(), a, readMethod)
			require.NoError(t, err)
			require.Equal(t, "hello", got)
			got, err = invokeMethod(t.Context(), b, readMethod)
			if scoped {
				require.NoError(t, err)
				require.Equal(t, "hello", got)
			} else {
				requireDown(t, got, err)
			}
		})
	}
	_, err := grpcmw.New(newKit(t, policy()), grpcmw.WithCacheScope(""))
	require.EqualError(t, err, "grpcmw: WithCacheScope: the scope is empty")
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

func withHeader(key, value string) hit {
	return func(s grpc.ServerStream) error {
		_ = s.SetHeader(metadata.Pairs(key, value))
		return parrot(s)
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

// A connection that nobody uses any more takes its cache along. It runs outside a
// bubble: the collector does.
func TestTheCacheOfAConnectionIsCollected(t *testing.T) {
	o := staleOrigin(t, forAll(), parrot)
	interceptors, err := grpcmw.New(o.kit)
	require.NoError(t, err)
	func() {
		cc, err := grpc.NewClient("passthrough:///nowhere", append(interceptors.DialOptions(), grpc.WithTransportCredentials(insecureCredentials))...)
		require.NoError(t, err)
		_, _ = invokeMethod(t.Context(), cc, readMethod)
		require.Equal(t, 1, interceptors.CacheCount())
		require.NoError(t, cc.Close())
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return interceptors.CacheCount() == 0
	}, 10*time.Second, time.Millisecond)
}
