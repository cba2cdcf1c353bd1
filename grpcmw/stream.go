package grpcmw

import (
	"cmp"
	"context"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// stream is the interceptor for streaming RPCs. They have no fallback.
func (i *Interceptors) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	options := readOptions(opts)
	if options.inside == i.kit {
		return streamer(ctx, desc, cc, method, opts...) // Failover does it all
	}
	return i.begin(ctx, desc, repeat{cc: cc, method: method, streamer: streamer}, options)
}

// begin begins a streaming call.
func (i *Interceptors) begin(ctx context.Context, desc *grpc.StreamDesc, way repeat, options callOptions) (_ grpc.ClientStream, err error) {
	route := i.find(way.method)
	r := newRecord(i, route.name, options)
	info := call.Info{Target: i.targetOf(way.cc), Method: route.name, Safety: route.declared}
	begun := false
	defer func() {
		if !begun { // a hook panicked, or an override is bad
			r.fire(cmp.Or(err, unwound.Err))
		}
	}()
	r.ctx, err = r.call.Begin(ctx, route.policy, info, holdfast.Terms{
		Keyed: keyed(ctx), Stream: true, Override: r.options.override, Upstreams: way.failover.upstreams(),
	})
	if err != nil {
		err = &statusError{err: err, bad: true}
		return nil, err
	}
	begun = true
	r.first.info = r.call.Info()
	s := &stream{record: r, desc: desc, repeat: way}
	r.enter()
	returned := false
	defer func() { r.leave(returned) }()
	opened := s.next(call.Result{})
	returned = true
	if !opened {
		return nil, r.finalError()
	}
	if ctx.Done() == nil {
		r.watch(s) // nothing else would end it if the caller drops it
	}
	return s, nil
}

// stream is what the caller holds of a stream. Behind it one attempt may take the
// place of another until it is settled: a message or a header was delivered, or
// the caller of a client's stream has sent something.
type stream struct {
	record *record
	desc   *grpc.StreamDesc
	spoken atomic.Bool // the server has

	settled  atomic.Bool // the attempt stands; set while changing is held
	changing latch       // held while the attempt is changed
	reading  latch       // held while one of its messages is awaited, until the first is there
	repeat
}

// attempt returns the attempt under way. It waits for a change that is going on.
func (s *stream) attempt() *try {
	if !s.settled.Load() {
		s.changing.lock()
		defer s.changing.unlock()
	}
	return s.record.now.Load()
}

// settle lets the attempt under way stand, and returns it.
func (s *stream) settle() *try {
	if !s.settled.Load() {
		s.changing.lock()
		defer s.changing.unlock()
		s.settled.Store(true)
		s.request = nil
	}
	return s.record.now.Load()
}

// settleOn lets t stand, and reports whether it is the attempt under way.
func (s *stream) settleOn(t *try) bool {
	if !s.settled.Load() {
		s.changing.lock()
		defer s.changing.unlock()
		if s.record.now.Load() != t {
			return false
		}
		s.settled.Store(true)
		s.request = nil
	}
	return s.record.now.Load() == t
}

// leave ends a method call. That it is deferred also keeps the collector from a
// stream whose last use is the call under way.
func (s *stream) leave(returned *bool) { s.record.leave(*returned) }

// RecvMsg receives the next message. An error, and io.EOF too, is the end of the
// stream; so is the only message of a server that sends one.
func (s *stream) RecvMsg(m any) (err error) {
	s.record.enter()
	returned := false
	defer s.leave(&returned)
	for again := true; again; {
		t := s.attempt()
		t.attempt.BeginWait()
		err = s.receive(t, m)
		_ = t.attempt.EndWait() // gRPC says by itself what became of the stream
		again, err = s.received(t, err)
	}
	returned = true
	return err
}

// receive receives a message of the attempt's. Until the first is there Header may
// do so too, and gRPC allows one at a time.
func (s *stream) receive(t *try, m any) error {
	if s.spoken.Load() {
		return t.stream.RecvMsg(m)
	}
	s.reading.lock()
	defer s.reading.unlock()
	err := t.stream.RecvMsg(m)
	if err == io.EOF {
		// When the server ends a stream that gRPC has just opened again on its
		// own, gRPC may take the io.EOF of the request that it sends again for the
		// end of the stream. Asked once more it gives the status, or a message; an
		// end that was an OK is io.EOF each time.
		err = t.stream.RecvMsg(m)
	}
	return err
}

// received judges what RecvMsg has returned. again says that another attempt
// has taken the place of the one that failed.
func (s *stream) received(t *try, err error) (again bool, _ error) {
	switch {
	case err == io.EOF:
		t.end(call.Result{Class: call.OK}, false)
		s.spoken.Store(true)
		return false, io.EOF
	case err != nil:
		return s.failed(t, err)
	case !s.spoken.Load():
		if limit := t.attempt.Delivered(); limit != nil {
			// The message came just too late: the context is cancelled.
			return s.failed(t, limit)
		}
		t.answered()
		s.settle()
		s.spoken.Store(true)
	}
	if !s.desc.ServerStreams {
		t.end(call.Result{Class: call.OK}, false)
	}
	return false, nil
}

// SendMsg sends a message. io.EOF says that the stream has ended, and that
// RecvMsg knows how; any other error is the end.
func (s *stream) SendMsg(m any) (err error) {
	s.record.enter()
	returned := false
	defer s.leave(&returned)
	if s.desc.ClientStreams {
		err = s.settle().send(m)
	} else {
		err = s.ask(m)
	}
	returned = true
	return err
}

// CloseSend says that no message follows. An error, which gRPC's own streams never
// have, is the end.
func (s *stream) CloseSend() (err error) {
	s.record.enter()
	returned := false
	defer s.leave(&returned)
	err = s.endRequest()
	returned = true
	return err
}

// Header waits for the server's header, which settles the attempt. Without one
// the stream has ended, and RecvMsg says how.
func (s *stream) Header() (md metadata.MD, err error) {
	s.record.enter()
	returned := false
	defer s.leave(&returned)
	for again := true; again; {
		again = false
		t := s.attempt()
		md, err = t.stream.Header()
		var end error
		if md == nil && err == nil {
			md, end = s.headerless(t)
		}
		switch {
		case err != nil:
			again, err = s.failed(t, err)
		case end == io.EOF:
			t.end(call.Result{Class: call.OK}, false)
		case end != nil:
			again, _ = s.failed(t, end)
		default:
			again = !s.settleOn(t)
		}
	}
	returned = true
	return md, err
}

// headerless returns how an attempt ended whose Header had nothing to return, nil
// if it has not ended as far as anyone knows; or its header, after all.
func (s *stream) headerless(t *try) (metadata.MD, error) {
	switch f := t.finish.Load(); {
	case f != nil && f.err != nil:
		return nil, f.err
	case f == nil && t.held.Err() != nil:
		// gRPC is about to say so, on another goroutine.
		return nil, status.FromContextError(t.held.Err()).Err()
	case f == nil:
		return nil, nil
	}
	// It is said to have been an OK, perhaps too soon, as in receive.
	if md, err := t.stream.Header(); md != nil || err != nil {
		return md, err
	}
	s.reading.lock()
	defer s.reading.unlock()
	if s.spoken.Load() {
		return nil, nil
	}
	return nil, t.stream.RecvMsg(new(emptypb.Empty)) // no message comes without a header
}

// Trailer returns the server's trailer, once the stream has ended.
func (s *stream) Trailer() metadata.MD { return s.attempt().stream.Trailer() }

// Context returns the stream's context. Before the first message that is not
// gRPC's own, which knows the peer but would keep it from repeating a stream that
// the server has refused; and it does not end with an attempt that is repeated.
func (s *stream) Context() context.Context {
	switch t := s.record.now.Load(); {
	case s.spoken.Load():
		return t.stream.Context()
	case s.record.call.MayRetry():
		return s.record.ctx
	default:
		return t.held
	}
}
