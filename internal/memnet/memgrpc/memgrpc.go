// Package memgrpc puts a gRPC server and connections to it on an in-memory
// wire; see package memnet.
package memgrpc

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// Target is the target of every connection made here.
const Target = "passthrough:///" + memnet.Host

// Server is a gRPC server on an in-memory wire.
type Server struct {
	// Wire has the switches and the counts.
	Wire *memnet.Listener

	tb     memnet.TB
	server *grpc.Server
	closed atomic.Bool

	mu    sync.Mutex
	conns []*grpc.ClientConn
}

// Serve starts a server; register puts the services on it. Close is called at
// tb's clean-up.
func Serve(tb memnet.TB, register func(grpc.ServiceRegistrar), opts ...grpc.ServerOption) *Server {
	tb.Helper()
	opts = append(slices.Clip(opts), grpc.WaitForHandlers(true))
	s := &Server{Wire: memnet.Listen(memnet.Host + ":443"), tb: tb, server: grpc.NewServer(opts...)}
	register(s.server)
	go func() { _ = s.server.Serve(s.Wire) }() // it ends with grpc.ErrServerStopped, or nil
	tb.Cleanup(s.Close)
	return s
}

// Dial makes a connection to the server, without TLS unless opts bring other
// transport credentials. Like grpc.NewClient, it connects at the first call.
// Close closes it.
func (s *Server) Dial(opts ...grpc.DialOption) *grpc.ClientConn {
	s.tb.Helper()
	opts = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return s.Wire.DialContext(ctx, "tcp", address)
		}),
	}, opts...)
	cc, err := grpc.NewClient(Target, opts...)
	if err != nil {
		s.tb.Fatalf("memgrpc: no connection: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, cc)
	return cc
}

// Start is Serve and one Dial.
func Start(tb memnet.TB, register func(grpc.ServiceRegistrar), opts ...grpc.DialOption) (*Server, *grpc.ClientConn) {
	tb.Helper()
	s := Serve(tb, register)
	return s, s.Dial(opts...)
}

// Close closes the connections, stops the server, which ends the calls'
// contexts in the handlers, and cuts the wire. It returns when the last handler
// has. A second Close does nothing.
func (s *Server) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.mu.Lock()
	conns := s.conns
	s.mu.Unlock()
	for _, cc := range conns {
		_ = cc.Close() // ErrClientConnClosing if the test has closed it
	}
	s.server.Stop()
	s.Wire.Reset() // for whoever dialled it by himself
}
