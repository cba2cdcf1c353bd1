package grpcmw

import (
	"context"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// stream is the interceptor for streaming RPCs. A stream gets one attempt and no
// fallback.
func (i *Interceptors) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	route := i.routes.find(method)
	r := &record{method: route.name, options: readOptions(opts), onPanic: i.config.onPanic}
	s, err := i.openStream(ctx, r, route, desc, cc, method, streamer)
	if err != nil {
		err = withStatus(err)
		r.fire(err)
		return nil, err
	}
	return s, nil
}

func (i *Interceptors) openStream(ctx context.Context, r *record, route *route, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer) (_ grpc.ClientStream, err error) {
	info := call.Info{Target: i.targetOf(cc), Method: route.name, Safety: route.declared}
	r.ctx, err = r.call.Begin(ctx, route.policy, info, holdfast.Terms{Keyed: keyed(ctx), Stream: true, Override: r.options.override})
	if err != nil {
		return nil, &statusError{err: err, bad: true}
	}
	if !r.call.Next(r.ctx, call.Result{}, nil) {
		return nil, r.call.Err()
	}
	held, refusal := r.call.OpenHeld(r.ctx, &r.attempt)
	if held == nil {
		return nil, refusal.Err
	}
	r.held = held
	r.call.WatchIdle(&r.attempt, false)

	r.enter()
	returned := false
	defer func() { r.leave(returned) }()
	sent, err := i.outgoing(r.held, route.name, r.call.Key(), 1)
	if err != nil {
		r.end(unsent(err))
		returned = true
		return nil, r.finalError()
	}
	pass := r.options.pass
	if r.attempt.Probe() {
		pass = seek(cc, pass)
	}
	opened, err := streamer(sent, desc, cc, method, r.witness.options(pass, false, r.onFinish)...)
	switch limit := r.attempt.Opened(); {
	case err != nil:
		err = r.fail(err)
	case limit != nil:
		// The context is cancelled, so the stream is dead.
		r.end(r.attempt.Judge(r.ctx, call.Result{Class: call.TimedOut, Err: limit}))
		err = r.finalError()
	}
	returned = true
	if err != nil {
		return nil, err
	}
	if !r.attempt.AwaitsFirst() {
		r.unwatched()
	}
	s := &stream{ClientStream: opened, record: r, one: !desc.ServerStreams}
	if ctx.Done() == nil {
		r.watch(s) // nothing else would end it if the caller drops it
	}
	return s, nil
}

// unwatched takes an open stream, which may be silent for as long as it likes,
// out of the search for a silent dependency.
func (r *record) unwatched() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.attempt.Unwatched()
	}
}

// stream is what the caller holds of a stream.
type stream struct {
	grpc.ClientStream
	record *record
	one    bool        // the server sends one message only
	spoken atomic.Bool // the server has
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
	s.record.attempt.BeginWait()
	err = s.ClientStream.RecvMsg(m)
	s.record.attempt.EndWait()
	err = s.received(err)
	returned = true
	return err
}

func (s *stream) received(err error) error {
	r := s.record
	switch {
	case err == io.EOF:
		r.end(call.Result{Class: call.OK})
		s.spoken.Store(true)
		return io.EOF
	case err != nil:
		return r.fail(err)
	case !s.spoken.Load():
		if limit := r.attempt.Delivered(); limit != nil {
			// The message came just too late: the context is cancelled.
			return r.fail(limit)
		}
		r.answered()
		s.spoken.Store(true)
	}
	if s.one {
		r.end(call.Result{Class: call.OK})
	}
	return nil
}

// SendMsg sends a message. io.EOF says that the stream has ended, and that
// RecvMsg knows how; any other error is the end.
func (s *stream) SendMsg(m any) (err error) {
	s.record.enter()
	returned := false
	defer s.leave(&returned)
	if err = s.ClientStream.SendMsg(m); err != nil && err != io.EOF {
		err = s.record.fail(err)
	}
	returned = true
	return err
}

// Header waits for the server's header. Without one the stream has ended, and
// RecvMsg says how.
func (s *stream) Header() (md metadata.MD, err error) {
	s.record.enter()
	returned := false
	defer s.leave(&returned)
	md, err = s.ClientStream.Header()
	switch f := s.record.finish.Load(); {
	case err != nil:
		err = s.record.fail(err)
	case md == nil && f != nil:
		s.record.end(s.record.judge(f.err))
	}
	returned = true
	return md, err
}

// Context returns the stream's context. Before the first message that is the
// attempt's: gRPC's own, which knows the peer, would keep it from repeating a
// stream that the server has refused.
func (s *stream) Context() context.Context {
	if s.spoken.Load() {
		return s.ClientStream.Context()
	}
	return s.record.held
}
