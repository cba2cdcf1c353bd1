package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// server is one that restarts on the address it began with.
type server struct {
	address string
	start   func(net.Listener) (stop func(graceful bool))
	stop    func(graceful bool)
}

func startServer(t *testing.T, start func(net.Listener) func(bool)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return &server{address: l.Addr().String(), start: start, stop: start(l)}
}

func (s *server) restart(graceful bool, down time.Duration) error {
	s.stop(graceful)
	time.Sleep(down) // real time: it is down for real
	var l net.Listener
	var err error
	for range 50 {
		if l, err = net.Listen("tcp", s.address); err == nil {
			s.stop = s.start(l)
			return nil
		}
		time.Sleep(20 * time.Millisecond) // until the system lets go of the port
	}
	return err
}

// order is what a client asks of a server, in text: its number, what to answer, and
// how long to take for each piece.
type order struct {
	id     string
	code   int
	pieces int
	pause  time.Duration
}

func (o order) String() string { return fmt.Sprint(o.id, " ", o.code, " ", o.pieces, " ", o.pause) }

func parseOrder(text string) (o order, err error) {
	f := strings.Fields(text)
	if len(f) != 4 {
		return o, fmt.Errorf("%q is no order", text)
	}
	o.id = f[0]
	if o.code, err = strconv.Atoi(f[1]); err != nil {
		return o, err
	}
	if o.pieces, err = strconv.Atoi(f[2]); err != nil {
		return o, err
	}
	o.pause, err = time.ParseDuration(f[3])
	return o, err
}

// The beginnings of ids that say something of an order.
const (
	once = "once-" // it may be carried out once, unless it has a key
	kept = "kept-" // it is the same for all who have it, and its answer may be a stale one
)

func (o order) kept() bool { return strings.HasPrefix(o.id, kept) }

// ownKey is the idempotency key that a client gives an order itself, if it does.
func (o order) ownKey() string { return "own-" + o.id }

const pieceSize = 600

// piece is the n-th piece of an answer. It says whose it is.
func (o order) piece(n int) string {
	text := fmt.Sprint(o.id, "/", n, ";")
	return text + strings.Repeat(".", pieceSize-len(text))
}

func (o order) whole() string {
	var b strings.Builder
	for n := range o.pieces {
		b.WriteString(o.piece(n))
	}
	return b.String()
}

// wait lets a pause pass, unless the caller leaves.
func wait(ctx context.Context, pause time.Duration) error {
	if pause == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idField is where a server says whose answer it is, in the response's header.
const idField = "x-order-id"

func httpServer(l *ledger) func(net.Listener) func(bool) {
	handle := func(w http.ResponseWriter, r *http.Request) {
		o, err := parseOrder(r.Header.Get("X-Order"))
		if err != nil {
			l.fault("the HTTP server was sent a bad request: %v", err)
			return
		}
		if r.Method != http.MethodGet {
			got, err := io.ReadAll(r.Body)
			if err != nil {
				return // cut off on its way
			}
			if string(got) != o.whole() {
				l.fault("%s %s: a body of %d bytes came as %d others", r.Method, o, len(o.whole()), len(got))
			}
		}
		key := r.Header.Get("Idempotency-Key")
		if r.Header.Get("X-Own-Key") != "" && key != o.ownKey() {
			l.fault("%s %s: its own key came as %q", r.Method, o, key)
		}
		l.arrive(o, key)
		w.Header().Set(idField, o.id)
		if o.code != http.StatusOK {
			if wait(r.Context(), o.pause) == nil {
				if o.code == http.StatusTooManyRequests || o.code == http.StatusServiceUnavailable {
					w.Header().Set("Retry-After", "0")
				}
				w.WriteHeader(o.code)
				_, _ = io.WriteString(w, "as ordered")
			}
			return
		}
		for n := range o.pieces {
			if wait(r.Context(), o.pause) != nil {
				panic(http.ErrAbortHandler)
			}
			if _, err := io.WriteString(w, o.piece(n)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
	return func(listener net.Listener) func(bool) {
		p := new(http.Protocols)
		p.SetHTTP1(true)
		p.SetUnencryptedHTTP2(true)
		s := &http.Server{Handler: http.HandlerFunc(handle), Protocols: p, ErrorLog: silentLog}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.Serve(listener) // http.ErrServerClosed
		}()
		return func(graceful bool) {
			if graceful {
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				_ = s.Shutdown(ctx)
				cancel()
			}
			_ = s.Close()
			<-served
		}
	}
}

// grpcServer serves every method by its kind, which its name says.
func grpcServer(l *ledger) func(net.Listener) func(bool) {
	handle := func(_ any, s grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(s)
		m := new(wrapperspb.StringValue)
		if err := s.RecvMsg(m); err != nil {
			return err
		}
		o, err := parseOrder(m.GetValue())
		if err != nil {
			l.fault("the gRPC server was sent a bad message: %v", err)
			return err
		}
		key := ""
		if md, ok := metadata.FromIncomingContext(s.Context()); ok {
			key = strings.Join(md.Get("idempotency-key"), "+")
		}
		l.arrive(o, key)
		_ = s.SetHeader(metadata.Pairs(idField, o.id)) // it fails once the stream is over
		more := 0
		for strings.HasSuffix(name, "Upload") || strings.HasSuffix(name, "Chat") {
			err := s.RecvMsg(m)
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if m.GetValue() != o.piece(more) {
				l.fault("%s %s: message %d came as %.20q", name, o, more, m.GetValue())
			}
			more++
			if strings.HasSuffix(name, "Chat") {
				if err := s.SendMsg(m); err != nil {
					return err
				}
			}
		}
		switch {
		case o.code != 0:
			if err := wait(s.Context(), o.pause); err != nil {
				return err
			}
			return status.Error(codes.Code(o.code), "as ordered")
		case strings.HasSuffix(name, "Chat"):
			return nil
		case strings.HasSuffix(name, "Upload"):
			return s.SendMsg(wrapperspb.String(strconv.Itoa(more)))
		}
		for n := range o.pieces {
			if err := wait(s.Context(), o.pause); err != nil {
				return err
			}
			if err := s.SendMsg(wrapperspb.String(o.piece(n))); err != nil {
				return err
			}
		}
		return nil
	}
	return func(listener net.Listener) func(bool) {
		s := grpc.NewServer(grpc.UnknownServiceHandler(handle), grpc.WaitForHandlers(true))
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.Serve(listener) // grpc.ErrServerStopped, or nil
		}()
		return func(graceful bool) {
			if graceful {
				late := time.AfterFunc(200*time.Millisecond, s.Stop)
				s.GracefulStop()
				late.Stop()
			}
			s.Stop()
			<-served
		}
	}
}

// pick returns one of some.
func pick[T any](draw *rand.Rand, some ...T) T { return some[draw.IntN(len(some))] }
