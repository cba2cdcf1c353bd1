package chaos

import (
	"math/rand/v2"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
)

// place is a server behind a proxy.
type place struct {
	server *server
	proxy  *proxy
}

// stage is what the soak is played on. Of each wire there are two servers, of which
// the second is for failover alone; a kit; and clients that go through it to the
// first server or to both. The workers of a fleet share a store, and call the first
// HTTP server with Do; so does a member that shares nothing.
type stage struct {
	seed   uint64
	ledger *ledger

	places  []*place // HTTP, gRPC, and again
	store   *store
	members []*member

	transports []*http.Transport
	plain      *http.Transport // without a kit
	webs       []*http.Client
	dialed     []*grpc.ClientConn
	conns      []grpc.ClientConnInterface
}

func (s *stage) source(n int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(n))) }

func newStage(t *testing.T, l *ledger, seed uint64) *stage {
	t.Helper()
	s := &stage{seed: seed, ledger: l, store: startStore(t, seed+10)}
	for n, start := range []func(*ledger) func(net.Listener) func(bool){httpServer, grpcServer, httpServer, grpcServer} {
		server := startServer(t, start(l))
		s.places = append(s.places, &place{server, startProxy(t, server.address, seed+uint64(n))})
	}
	stale, err := memory.New(1 << 20)
	require.NoError(t, err)
	s.members = []*member{
		{name: "web", wire: "http", stale: stale},
		{name: "rpc", wire: "grpc", stale: stale},
		{name: "alone", wire: "do"},
		{name: "worker-1", wire: "do", shared: s.store.sharing(l, "1")},
		{name: "worker-2", wire: "do", shared: s.store.sharing(l, "2")},
	}
	var kits []*holdfast.Kit
	for n, m := range s.members {
		m.kit, err = holdfast.New(m.config(s.source(10+n), l))
		require.NoError(t, err)
		kits = append(kits, m.kit)
	}
	l.trace(kits...)
	s.dialHTTP(t)
	s.dialGRPC(t)
	return s
}

// dialHTTP makes clients on both versions of the protocol, to the first server and
// with failover, and one without a kit. On HTTP/2 the first upstream has both servers
// for its instances.
func (s *stage) dialHTTP(t *testing.T) {
	t.Helper()
	kit := s.members[0].kit
	newTransport := func(h2 bool) *http.Transport {
		p := new(http.Protocols)
		p.SetHTTP1(!h2)
		p.SetUnencryptedHTTP2(h2)
		tr := &http.Transport{Protocols: p, DialContext: new(net.Dialer).DialContext}
		s.transports = append(s.transports, tr)
		return tr
	}
	for _, h2 := range []bool{false, true} {
		base := watched{newTransport(h2), s.ledger}
		s.webs = append(s.webs, &http.Client{Transport: httpmw.NewTransport(base, kit)})
		first, second := httpmw.Upstream{Name: "first", URL: s.url(0)}, httpmw.Upstream{Name: "second", URL: s.url(2)}
		if h2 {
			first = httpmw.Upstream{Name: "both", Instances: []string{s.url(0), s.url(2)}}
		}
		over, err := httpmw.Failover(base, kit, []httpmw.Upstream{first, second})
		require.NoError(t, err)
		s.webs = append(s.webs, &http.Client{Transport: over})
	}
	s.plain = newTransport(false)
}

// dialGRPC makes two connections to the first server, and two with failover, of which
// the second has both servers for the instances of its first upstream.
func (s *stage) dialGRPC(t *testing.T) {
	t.Helper()
	kit := s.members[1].kit
	dial := func(n int, opts ...grpc.DialOption) *grpc.ClientConn {
		opts = append(append(opts, marksErrors()...), grpc.WithTransportCredentials(insecure.NewCredentials()))
		cc, err := grpc.NewClient(s.places[n].proxy.address(), opts...)
		require.NoError(t, err)
		s.dialed = append(s.dialed, cc)
		return cc
	}
	for range 2 {
		s.conns = append(s.conns, dial(1, grpcmw.DialOptions(kit)...))
	}
	first, second := dial(1), dial(3)
	for _, list := range [][]grpcmw.Upstream{
		{{Name: "first", Conn: first}, {Name: "second", Conn: second}},
		{{Name: "both", Instances: []grpc.ClientConnInterface{first, second}}, {Name: "second", Conn: second}},
	} {
		over, err := grpcmw.Failover(kit, list)
		require.NoError(t, err)
		s.conns = append(s.conns, over)
	}
}

func (s *stage) url(n int) string { return "http://" + s.places[n].proxy.address() }

func (s *stage) proxies() []*proxy {
	all := []*proxy{s.store.proxy}
	for _, p := range s.places {
		all = append(all, p.proxy)
	}
	return all
}

func (s *stage) client(name string, n int) *client {
	return &client{
		name: name, draw: s.source(n), ledger: s.ledger, webs: s.webs, url: s.url(0) + "/", conns: s.conns,
		workers: s.members[2:], plain: &http.Client{Transport: watched{s.plain, s.ledger}},
	}
}

// close lets go of all connections, looks for those that are left, and stops the
// servers.
func (s *stage) close(t *testing.T) {
	t.Helper()
	for _, tr := range s.transports {
		tr.CloseIdleConnections()
	}
	for _, cc := range s.dialed {
		require.NoError(t, cc.Close())
	}
	for n, p := range s.places {
		require.True(t, settles(func() bool { return p.proxy.connections() == 0 }), "%d connections are left to server %d", p.proxy.connections(), n)
		p.proxy.close()
		p.server.stop(false)
	}
	s.store.close(t)
	for _, m := range s.members {
		s.ledger.visit(m.kit)
	}
}
