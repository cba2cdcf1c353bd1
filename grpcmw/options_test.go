package grpcmw_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	// The interop test service is registered: its names can be checked.
	_ "google.golang.org/grpc/interop/grpc_testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// C1: every bad option is named, as in httpmw, the zero one and one for another
// constructor too.
func TestC1_EveryBadOptionIsNamed(t *testing.T) {
	k := newKit(t, policy())
	bad := []grpcmw.Option{{}, grpcmw.WithAttemptHook(nil), grpcmw.WithCredentialMetadata("a b", "c d"), grpcmw.WithTarget("t")}
	_, err := grpcmw.New(k, bad...)
	_, failoverErr := grpcmw.Failover(k, nil, bad...)
	for _, err := range []error{err, failoverErr} {
		require.ErrorContains(t, err, "Option[0]: is the zero Option")
		require.ErrorContains(t, err, "WithAttemptHook: must not be nil")
		require.ErrorContains(t, err, `WithCredentialMetadata = "a b": is no metadata key`)
		require.ErrorContains(t, err, `WithCredentialMetadata = "c d": is no metadata key`)
	}
	require.NotContains(t, err.Error(), "WithTarget")
	require.ErrorContains(t, failoverErr, "WithTarget: is not for Failover")
}

func TestBadArgumentsGetAnError(t *testing.T) {
	k := newKit(t, policy())
	bad, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"*": {}}})
	require.NoError(t, err, "the kit does not know the protocol")

	for name, c := range map[string]struct {
		k    *holdfast.Kit
		opts []grpcmw.Option
		want string
	}{
		"nil kit":      {nil, nil, "the kit is nil"},
		"bad table":    {bad, nil, `Methods["*"]`},
		"zero option":  {k, []grpcmw.Option{{}}, "Option[0]: is the zero Option"},
		"empty target": {k, []grpcmw.Option{grpcmw.WithTarget("")}, "WithTarget: must not be empty"},
		"nil handler":  {k, []grpcmw.Option{grpcmw.WithPanicHandler(nil)}, "WithPanicHandler: must not be nil"},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := grpcmw.New(c.k, c.opts...)
			require.Nil(t, i)
			require.ErrorContains(t, err, c.want)
			for _, short := range []func(){
				func() { grpcmw.UnaryClientInterceptor(c.k, c.opts...) },
				func() { grpcmw.StreamClientInterceptor(c.k, c.opts...) },
				func() { grpcmw.DialOptions(c.k, c.opts...) },
			} {
				require.PanicsWithError(t, err.Error(), short)
			}
		})
	}

	i, err := grpcmw.New(k)
	require.NoError(t, err)
	require.Len(t, i.DialOptions(), 3)
	fine := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	require.NoError(t, i.Unary()(t.Context(), "", nil, nil, nil, fine))
	require.NoError(t, i.Unary()(t.Context(), "no slash", nil, nil, nil, fine))
	require.ErrorContains(t, i.Unary()(nil, method, nil, nil, nil, fine), "context is nil")
	_, err = i.Stream()(nil, serverStream, nil, method, nil)
	require.ErrorContains(t, err, "context is nil")
	_, err = i.Stream()(t.Context(), serverStream, nil, method, func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		return &fake{ctx: ctx}, nil
	})
	require.NoError(t, err)
}

// WithTarget lets connections with different targets share their state.
func TestWithTargetNamesTheDependency(t *testing.T) {
	for shared, opts := range map[bool][]grpcmw.Option{false: nil, true: {grpcmw.WithTarget("shop")}} {
		k := newKit(t, with(oneAttempt))
		u := grpcmw.UnaryClientInterceptor(k, opts...)
		one, err := grpc.NewClient("passthrough:///one", grpc.WithTransportCredentials(insecureCredentials))
		require.NoError(t, err)
		two, err := grpc.NewClient("passthrough:///two", grpc.WithTransportCredentials(insecureCredentials))
		require.NoError(t, err)
		down := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return errDown }
		for range 5 {
			require.Equal(t, errDown, u(t.Context(), method, nil, nil, one, down))
		}
		err = u(t.Context(), method, nil, nil, two, down)
		if shared {
			require.ErrorIs(t, err, breaker.ErrOpen)
		} else {
			require.Equal(t, errDown, err)
		}
		require.NoError(t, one.Close())
		require.NoError(t, two.Close())
	}
}
