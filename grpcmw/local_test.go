package grpcmw_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// The client's own faults say nothing about the server and are not repeated.
func TestLocalFaultsAreNeitherCountedNorRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		code codes.Code
		opts []grpc.CallOption
		ctx  func(context.Context) context.Context
		req  any
		// A transport took the stream before the fault showed.
		opened bool
	}{
		"request too large": {code: codes.ResourceExhausted, opts: []grpc.CallOption{grpc.MaxCallSendMsgSize(1)}, opened: true},
		"reply too large":   {code: codes.ResourceExhausted, opts: []grpc.CallOption{grpc.MaxCallRecvMsgSize(1)}, opened: true},
		"not a message":     {code: codes.Internal, req: 7, opened: true},
		"bad metadata": {code: codes.Internal, ctx: func(ctx context.Context) context.Context {
			return metadata.NewOutgoingContext(ctx, metadata.MD{"bad key!": {"x"}})
		}},
		"no such compressor":       {code: codes.Internal, opts: []grpc.CallOption{grpc.UseCompressor("none such")}},
		"no such codec":            {code: codes.Internal, opts: []grpc.CallOption{grpc.CallContentSubtype("none-such")}},
		"credentials fail":         {code: codes.Internal, opts: []grpc.CallOption{grpc.PerRPCCredentials(credentials{err: errors.New("no token")})}},
		"credentials want TLS":     {code: codes.Unauthenticated, opts: []grpc.CallOption{grpc.PerRPCCredentials(credentials{secure: true})}},
		"credentials with a code":  {code: codes.Unauthenticated, opts: []grpc.CallOption{grpc.PerRPCCredentials(credentials{err: status.Error(codes.Unauthenticated, "no token")})}},
		"credentials, bad header ": {code: codes.Internal, opts: []grpc.CallOption{grpc.PerRPCCredentials(credentials{header: "bad key!"})}},
	} {
		for retries, change := range map[string]func(*holdfast.Policy){"": readOnly, " without retry": oneAttempt} {
			if name == "credentials with a code" && retries != "" {
				continue // it cannot be told from a server's without the proof that is collected for retry
			}
			t.Run(name+retries, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := play(t, say("a reply of some length"))
					attempts := 0
					cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
						change(p)
						p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
							attempts++
							require.Equal(t, call.Permanent, r.Class)
							return r
						}
					})))
					ctx := t.Context()
					if c.ctx != nil {
						ctx = c.ctx(ctx)
					}
					req := any(wrapperspb.String("hello"))
					if c.req != nil {
						req = c.req
					}
					for range 20 { // far more than would open the breaker
						err := cc.Invoke(ctx, method, req, new(wrapperspb.StringValue), c.opts...)
						require.Equal(t, c.code, status.Code(err), "%v", err)
					}
					require.Equal(t, 20, attempts)
					if !c.opened {
						require.Zero(t, s.hitCount())
					}
				})
			})
		}
	}
}

type credentials struct {
	err    error
	secure bool
	header string
}

func (c credentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{c.header: "x"}, c.err
}

func (c credentials) RequireTransportSecurity() bool { return c.secure }

// The same words about a message that is too large for the server are its own.
func TestARequestTooLargeForTheServerIsItsAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, func(grpc.ServerStream) error {
			return status.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 4)")
		})
		var class call.Class
		cc := s.connect(t, newKit(t, with(func(p *holdfast.Policy) {
			p.Safety = call.ReadOnly
			p.Classify = func(_ context.Context, _ call.Info, r call.Result) call.Result {
				class = r.Class
				return r
			}
		})))
		_, err := invoke(t.Context(), cc)
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.Equal(t, call.Throttled, class)
		require.Equal(t, 1, s.hitCount())
	})
}

func TestAConnectionClosedByItsOwnerIsNoFault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := play(t, say(""))
		cc := s.connect(t, newKit(t, with(readOnly)))
		require.NoError(t, cc.Close())
		for range 20 {
			_, err := invoke(t.Context(), cc)
			//lint:ignore SA1019 It is what tells this end from the others.
			require.ErrorIs(t, err, grpc.ErrClientConnClosing)
		}
	})
}
