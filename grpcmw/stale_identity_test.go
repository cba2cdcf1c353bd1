package grpcmw_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/retry"
)

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
			"API key":         {ctx: metadata.AppendToOutgoingContext(t.Context(), "X-Goog-Api-Key", "A")},
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

// F3: a copy answers its own RPC alone: the same method, request and types.
func TestF3_TheKeyHoldsTheRPC(t *testing.T) {
	text := func() proto.Message { return new(wrapperspb.StringValue) }
	for name, other := range map[string]struct {
		method  string
		request proto.Message
		reply   func() proto.Message
	}{
		"another method":         {"/test.Service/ReadMore", wrapperspb.String("x"), text},
		"another request":        {readMethod, wrapperspb.String("y"), text},
		"of another type":        {readMethod, wrapperspb.Bytes([]byte("x")), text}, // it is sent as the same bytes
		"a reply of another one": {readMethod, wrapperspb.String("x"), func() proto.Message { return new(wrapperspb.BytesValue) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := staleOrigin(t, forAll(), parrot)
				ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Safety: call.ReadOnly})
				ask := func() error { return o.cc.Invoke(ctx, other.method, other.request, other.reply()) }
				_, _, err := o.call(ctx, readMethod, "x")
				require.NoError(t, err)
				o.down.Store(true)
				_, header, err := o.call(ctx, readMethod, "x")
				require.NoError(t, err)
				require.True(t, isStale(header))
				require.Equal(t, codes.Unavailable, status.Code(ask()))
				o.down.Store(false)
				require.NoError(t, ask())
				o.down.Store(true)
				require.NoError(t, ask(), "it has a copy of its own")
			})
		})
	}
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
	require.EqualError(t, err, "grpcmw: WithCacheScope: must not be empty")
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
