package httpmw_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// onSockets starts the servers on loopback. The names are those of the bubbles: the
// transport is told where each one is.
func (c *channels) onSockets(t memnet.TB, tune func(*http.Server, *http.Transport)) {
	c.refused = &refusals{at: map[string]string{}, now: map[string]bool{}}
	c.base = &http.Transport{Protocols: c.proto.Protocols(), ExpectContinueTimeout: time.Second, DialContext: c.refused.dial}
	for name, s := range c.scripts {
		server := httptest.NewUnstartedServer(s)
		tune(server.Config, c.base)
		server.Config.Protocols = c.proto.Protocols()
		if c.proto.TLS() {
			// httptest makes the server's own configuration of this one.
			server.TLS, server.Config.TLSConfig, server.EnableHTTP2 = server.Config.TLSConfig, nil, true
			server.StartTLS()
		} else {
			server.Start()
		}
		c.refused.at[c.address(name)] = server.Listener.Addr().String()
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
	}
	t.Cleanup(c.base.CloseIdleConnections)
	c.refused.closed = closedPort(t)
}

// refusals dials the servers, and a port where nobody listens for those that refuse.
type refusals struct {
	at     map[string]string
	closed string
	open   atomic.Int64 // connections

	mu  sync.Mutex
	now map[string]bool
}

// closing counts a connection until it is closed.
type closing struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

func (c *closing) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func (r *refusals) set(address string, refuse bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[address] = refuse
}

func (r *refusals) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r.mu.Lock()
	to := r.at[address]
	if r.now[address] {
		to = r.closed
	}
	r.mu.Unlock()
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, to)
	if err != nil {
		return nil, err
	}
	r.open.Add(1)
	return &closing{Conn: conn, open: &r.open}, nil
}

// closedPort is an address that refuses: one that a listener has just given back.
func closedPort(t memnet.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("no port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}
