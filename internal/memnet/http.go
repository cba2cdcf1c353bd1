package memnet

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Proto is how HTTP is spoken on the wire.
type Proto string

// The protocols.
const (
	HTTP1 Proto = "http/1.1"
	H2C   Proto = "h2c"      // HTTP/2 without TLS, by prior knowledge
	HTTPS Proto = "https"    // HTTP/1.1 over TLS
	H2    Proto = "h2 (tls)" // HTTP/2 over TLS
)

// Protos returns the three protocols that differ in how requests fail: HTTP1,
// H2C and H2, for tests that run one table over each.
func Protos() []Proto { return []Proto{HTTP1, H2C, H2} }

// TLS reports whether the protocol is spoken over TLS.
func (p Proto) TLS() bool { return p == HTTPS || p == H2 }

// Protocols is what a server or transport of net/http is told so that it speaks
// this protocol and no other.
func (p Proto) Protocols() *http.Protocols {
	var ps http.Protocols
	switch p {
	case H2C:
		ps.SetUnencryptedHTTP2(true)
	case H2:
		ps.SetHTTP2(true)
	default:
		ps.SetHTTP1(true)
	}
	return &ps
}

// Host is the host name of every [Server], as its certificate has it.
const Host = "api.test"

// Server is an HTTP server on an in-memory wire, and a transport that reaches
// it.
type Server struct {
	// Wire has the switches and the counts.
	Wire *Listener

	// URL is the base URL, without a slash at its end. Transport dials Wire
	// whatever the URL's host.
	URL string

	// Transport is of the server's protocol, trusts its certificate, and has
	// otherwise net/http's zero settings, but for an ExpectContinueTimeout of
	// 1 s.
	Transport *http.Transport

	server *http.Server
	cancel context.CancelFunc
	busy   crowd // handlers, and the server's connections
	closed atomic.Bool
}

// Start starts a server that answers with h. The tune functions may change
// server and transport before they are used. Close is called at tb's clean-up.
func Start(tb TB, proto Proto, h http.Handler, tune ...func(*http.Server, *http.Transport)) *Server {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{cancel: cancel}
	scheme, port := "http", "80"
	if proto.TLS() {
		scheme, port = "https", "443"
	}
	s.URL = scheme + "://" + Host
	s.Wire = Listen(Host + ":" + port)
	s.server = &http.Server{
		Handler:     s.counted(h),
		Protocols:   proto.Protocols(),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	s.Transport = &http.Transport{
		DialContext:           s.Wire.DialContext,
		Protocols:             proto.Protocols(),
		ExpectContinueTimeout: time.Second,
	}
	if proto.TLS() {
		cert, roots, err := Certificate(Host)
		if err != nil {
			tb.Fatalf("memnet: no certificate: %v", err)
		}
		s.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		s.Transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	for _, t := range tune {
		t(s.server, s.Transport)
	}
	s.server.ConnState = s.countedConns(s.server.ConnState)
	serve := s.server.Serve
	if proto.TLS() {
		serve = func(l net.Listener) error { return s.server.ServeTLS(l, "", "") }
	}
	go func() { _ = serve(s.Wire) }() // it ends with http.ErrServerClosed
	tb.Cleanup(s.Close)
	return s
}

// counted makes Close able to wait for the handlers.
func (s *Server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.busy.enter()
		defer s.busy.leave()
		h.ServeHTTP(w, r)
	})
}

// countedConns makes Close able to wait for the connections' own goroutines:
// net/http lingers for half a second over a connection whose request it did not
// read to the end.
func (s *Server) countedConns(next func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.busy.enter()
		case http.StateClosed, http.StateHijacked:
			defer s.busy.leave()
		}
		if next != nil {
			next(c, state)
		}
	}
}

// Client returns a new client over Transport.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport} }

// Close ends everything: the requests' contexts in the handlers, the
// connections of both sides, and the wire. It returns when the last handler
// has. A second Close does nothing.
func (s *Server) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.cancel()
	_ = s.server.Close()
	s.Wire.Reset() // for the clients: a silent wire holds the server's end back
	s.busy.wait()
}

// crowd counts who is inside. Unlike a WaitGroup it may be entered while somebody
// waits for it to be empty, as a connection does that comes up during Close.
type crowd struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // made by who waits, closed when nobody is inside any more
}

func (c *crowd) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

func (c *crowd) wait() {
	for {
		c.mu.Lock()
		if c.n == 0 {
			c.mu.Unlock()
			return
		}
		if c.empty == nil {
			c.empty = make(chan struct{})
		}
		empty := c.empty
		c.mu.Unlock()
		<-empty
	}
}
