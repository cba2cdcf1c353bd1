package grpcmw_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	tlscreds "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memnet/memgrpc"
)

// tellsTenants answers with the tenant, as a server does that knows its callers by
// metadata of its own.
func tellsTenants(s grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(s.Context())
	return say("for " + strings.Join(append(md["x-tenant-token"], md["x-tenant-token-bin"]...), ","))(s)
}

// D062, F3: what else a server knows its callers by is named, and then a request that has
// it is nobody else's: it neither fills the cache of all nor is answered from it.
func TestF3_NamedMetadataAreCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		option []string
		key    string // of the caller's metadata
		hook   bool   // an attempt hook sets it
		named  bool
	}{
		"named":                {option: []string{"X-Tenant-Token"}, key: "x-tenant-token", named: true},
		"one of several":       {option: []string{"x-a", "x-tenant-token", "x-b"}, key: "X-TENANT-Token", named: true},
		"bytes":                {option: []string{"x-tenant-token"}, key: "x-tenant-token-bin", named: true},
		"named as bytes":       {option: []string{"X-Tenant-Token-Bin"}, key: "x-tenant-token", named: true},
		"set by a hook":        {option: []string{"x-tenant-token"}, key: "X-Tenant-Token", hook: true, named: true},
		"another is named":     {option: []string{"x-tenant", "tenant-token"}, key: "x-tenant-token"},
		"nobody has named any": {key: "x-tenant-token"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				tenant := ""
				opts := []grpcmw.Option{grpcmw.WithCredentialMetadata(c.option...)}
				if c.hook {
					opts = append(opts, grpcmw.WithAttemptHook(func(_ context.Context, _ string, _ int, md metadata.MD) error {
						if tenant != "" {
							md.Set(c.key, tenant)
						}
						return nil
					}))
				}
				o := staleOrigin(t, forAll(), tellsTenants, opts...)
				read := func(who string) (string, error) {
					ctx := t.Context()
					if tenant = who; who != "" && !c.hook {
						ctx = metadata.AppendToOutgoingContext(ctx, c.key, who)
					}
					got, _, err := o.call(ctx, readMethod, "x")
					return got, err
				}
				got, err := read("A")
				require.NoError(t, err)
				require.Equal(t, "for A", got)
				o.down.Store(true)
				for _, who := range []string{"B", "A", ""} {
					got, err := read(who)
					if c.named {
						requireDown(t, got, err)
					} else {
						require.Equal(t, "for A", got, "the policy says that it looks the same to everybody")
					}
				}
				o.down.Store(false)
				got, err = read("") // is everybody's
				require.NoError(t, err)
				require.Equal(t, "for ", got)
				o.down.Store(true)
				got, err = read("")
				require.NoError(t, err)
				require.Equal(t, "for ", got)
				if c.named {
					got, err = read("A")
					requireDown(t, got, err)
				}
			})
		})
	}
	for _, bad := range []string{"", "a b", "x:y", "\u00e9"} {
		_, err := grpcmw.New(newKit(t, policy()), grpcmw.WithCredentialMetadata("fine", bad))
		require.EqualError(t, err, fmt.Sprintf("grpcmw: WithCredentialMetadata = %q: is no metadata key", bad))
	}
}

// D062, F3: nobody gets the reply to another client certificate.
func TestD062_NoReplyCrossesClientCertificates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		own, roots, err := memnet.Certificate(memnet.Host)
		require.NoError(t, err)
		var down atomic.Bool
		s := memgrpc.Serve(t, func(grpc.ServiceRegistrar) {},
			grpc.Creds(tlscreds.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequestClientCert})),
			grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
				if down.Load() {
					return status.Error(codes.Unavailable, "down")
				}
				from, _ := peer.FromContext(ss.Context())
				certs := from.AuthInfo.(tlscreds.TLSInfo).State.PeerCertificates
				if len(certs) == 0 {
					return say("nobody")(ss)
				}
				return say(fmt.Sprintf("%x", sha256.Sum256(certs[0].Raw)))(ss)
			}))
		st := forAll()
		st.Store = newStore(t)
		kit := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			oneAttempt(p)
			p.Breaker = breaker.Off()
			p.Fallback = &fallback.Policy{Stale: &st}
		}))
		interceptors, err := grpcmw.New(kit) // one for all connections
		require.NoError(t, err)
		dial := func(certs ...tls.Certificate) *grpc.ClientConn {
			return s.Dial(append(interceptors.DialOptions(), grpc.WithTransportCredentials(tlscreds.NewTLS(
				&tls.Config{RootCAs: roots, ServerName: memnet.Host, Certificates: certs})))...)
		}
		var clients []*grpc.ClientConn
		var names []string
		for range 2 {
			cert, _, err := memnet.Certificate("client.test")
			require.NoError(t, err)
			clients, names = append(clients, dial(cert)), append(names, fmt.Sprintf("%x", sha256.Sum256(cert.Leaf.Raw)))
		}
		clients, names = append(clients, dial()), append(names, "nobody")
		late, _, err := memnet.Certificate("client.test")
		require.NoError(t, err)
		stranger := dial(late)

		for i, cc := range clients {
			got, err := invoke(t.Context(), cc)
			require.NoError(t, err)
			require.Equal(t, names[i], got)
		}
		down.Store(true)
		for i, cc := range clients {
			var header metadata.MD
			reply := new(wrapperspb.StringValue)
			require.NoError(t, cc.Invoke(t.Context(), method, wrapperspb.String("hello"), reply, grpc.Header(&header)))
			require.True(t, isStale(header))
			require.Equal(t, names[i], reply.Value)
		}
		got, err := invoke(t.Context(), stranger)
		requireDown(t, got, err)
	})
}

// F1, F3: over several upstreams a copy is of what the caller asked for, whoever has
// answered. Each failover has its own copies, and an upstream's credentials are
// credentials.
func TestF3_CopiesOfSeveralUpstreams(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var down atomic.Bool
		answer := func(text string) hit {
			return func(s grpc.ServerStream) error {
				if down.Load() {
					return status.Error(codes.Unavailable, "down")
				}
				return say(text)(s)
			}
		}
		store := newStore(t)
		st := forAll()
		st.Store = store
		kit := newKit(t, with(func(p *holdfast.Policy) {
			readOnly(p)
			p.Breaker.MinCalls, p.Breaker.Window.Calls = 100, 100
			p.Fallback = &fallback.Policy{Stale: &st}
		}))
		a, b := play(t, fail(codes.Unavailable)), play(t, answer("B"))
		first, second := over(t, kit, a, b), over(t, kit, a, b)
		signed, err := grpcmw.Failover(kit, []grpcmw.Upstream{{Conn: a.Dial(), Name: "a"}, {
			Conn: b.Dial(), Name: "b",
			Prepare: func(_ context.Context, _ string, _ int, md metadata.MD) error { md.Set("x-api-key", "b's"); return nil },
		}})
		require.NoError(t, err)
		for _, f := range []*grpcmw.FailoverConn{first, signed} {
			text, upstream, err := ask(t.Context(), f)
			require.NoError(t, err)
			require.Equal(t, []string{"B", "b"}, []string{text, upstream})
		}
		require.Equal(t, 1, store.Len(), "not the one that was answered to a key")
		down.Store(true)
		var header metadata.MD
		text, _, err := ask(t.Context(), first, grpc.Header(&header))
		require.NoError(t, err)
		require.Equal(t, "B", text)
		require.True(t, isStale(header))
		for _, f := range []*grpcmw.FailoverConn{second, signed} {
			text, _, err := ask(t.Context(), f)
			requireDown(t, text, err)
		}
		_, _, err = ask(t.Context(), first, grpcmw.WithOverride(holdfast.Override{Safety: call.Idempotent}))
		require.Equal(t, codes.Unavailable, status.Code(err), "a write has its error")
	})
}
