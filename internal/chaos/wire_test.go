package chaos

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// wireError marks an error as the word of what is behind the kit: the base
// transport, the connection, the function of a Do. The kit is to hand it on as it
// is, and has no other error but its own and the caller's.
type wireError struct{ error }

func (e *wireError) Unwrap() error { return e.error }

// Timeout is for url.Error, which asks for it.
func (e *wireError) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](e.error)
	return ok && t.Timeout()
}

// wireStatus is a wireError of gRPC's.
type wireStatus struct{ wireError }

func (e *wireStatus) GRPCStatus() *status.Status { return status.Convert(e.error) }

// fromWire marks an error, if it is one.
func fromWire(err error) error {
	if err == nil {
		return nil
	}
	return &wireError{err}
}

// fromGRPC marks an error of a connection's; io.EOF is none.
func fromGRPC(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &wireStatus{wireError{err}}
}

// ofWire returns what the wire has said, nil if err is none of its errors.
func ofWire(err error) error {
	if e, ok := errors.AsType[*wireStatus](err); ok {
		return e
	}
	if e, ok := errors.AsType[*wireError](err); ok {
		return e
	}
	return nil
}

// watched is a transport whose errors are marked and whose response bodies are
// counted.
type watched struct {
	http.RoundTripper
	ledger *ledger
}

func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	if resp != nil && resp.Body != nil {
		resp.Body = &countedBody{ReadCloser: resp.Body, end: sync.OnceFunc(w.ledger.bodies.begin())}
	}
	return resp, fromWire(err)
}

// countedBody has ended when it was closed.
type countedBody struct {
	io.ReadCloser
	end func()
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		return n, io.EOF
	}
	return n, fromWire(err)
}

func (b *countedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// marksErrors returns the interceptors that stand behind a kit's and mark the errors
// of the connection.
func marksErrors() []grpc.DialOption {
	unary := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return fromGRPC(invoke(ctx, method, req, reply, cc, opts...))
	}
	stream := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		opts = slices.Clone(opts)
		for i, o := range opts {
			if o, ok := o.(grpc.OnFinishCallOption); ok { // which a kit may hear of the end by
				opts[i] = grpc.OnFinish(func(err error) { o.OnFinish(fromGRPC(err)) })
			}
		}
		s, err := open(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, fromGRPC(err)
		}
		return markedStream{s}, nil
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream)}
}

type markedStream struct{ grpc.ClientStream }

func (s markedStream) SendMsg(m any) error { return fromGRPC(s.ClientStream.SendMsg(m)) }
func (s markedStream) RecvMsg(m any) error { return fromGRPC(s.ClientStream.RecvMsg(m)) }
func (s markedStream) CloseSend() error    { return fromGRPC(s.ClientStream.CloseSend()) }

func (s markedStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, fromGRPC(err)
}
