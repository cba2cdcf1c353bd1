package grpcmw

import (
	"context"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// try is one attempt at a stream, from its admission to its end, which comes once
// from whoever is first: a method call of the caller's, gRPC's own goroutine when
// the context ends or the connection is closed, or the collector.
type try struct {
	record  *record
	info    call.Info         // the call's, at the upstream that it is for
	held    context.Context   // the attempt's
	stream  grpc.ClientStream // unopened until it is open
	attempt holdfast.Attempt
	witness witness
	finish  atomic.Pointer[ended] // what gRPC said at the end
	dropped atomic.Bool           // the collector has ended it
	over    bool                  // guarded by record.mu, as is:
	spoke   bool                  // the first message was delivered
}

// unopened is the stream of an attempt that has none: of a call that has ended
// with it, or is being unwound.
type unopened struct{ record *record }

func (u unopened) RecvMsg(any) error { return u.record.finalError() }

func (unopened) SendMsg(any) error { return io.EOF }

func (unopened) CloseSend() error { return nil }

func (unopened) Header() (metadata.MD, error) { return nil, nil }

func (unopened) Trailer() metadata.MD { return nil }

func (u unopened) Context() context.Context { return u.record.ctx }

// ended is the error of gRPC's OnFinish, nil for an OK.
type ended struct{ err error }

// end books the end of the attempt and gives everything back, unless that was
// done before. It reports whether it was first, and what the policy makes of the
// end. The call ends with the attempt unless it may go on. A panic goes on after
// that, and leave ends the call then.
func (t *try) end(res call.Result, mayGoOn bool) (verdict call.Result, first bool) {
	if !t.claim() {
		return res, false
	}
	verdict = unwound // what a panic leaves standing
	if !mayGoOn {
		defer func() { t.record.concludeWith(verdict) }()
	}
	defer t.attempt.Release()
	defer func() { t.attempt.Book(t.record.ctx, verdict) }()
	verdict = t.record.call.Classify(t.record.ctx, res)
	return verdict, true
}

// unwound is the result of an attempt that a panic or a Goexit ended.
var unwound = call.Result{
	Class: call.ServerFault, Code: int(codes.Internal), NoRetry: true,
	Err: status.Error(codes.Internal, "grpcmw: the call was ended by a panic"),
}

// claim makes the caller the one who ends the attempt.
func (t *try) claim() bool {
	t.record.mu.Lock()
	defer t.record.mu.Unlock()
	if t.over {
		return false
	}
	t.over = true
	return true
}

func (t *try) isOver() bool {
	t.record.mu.Lock()
	defer t.record.mu.Unlock()
	return t.over
}

// answered notes the first message. The lock keeps the ticket to one goroutine at
// a time.
func (t *try) answered() {
	t.record.mu.Lock()
	defer t.record.mu.Unlock()
	t.spoke = true
	if !t.over {
		t.attempt.Answered()
	}
}

func (t *try) hasSpoken() bool {
	t.record.mu.Lock()
	defer t.record.mu.Unlock()
	return t.spoke
}

// unwatched takes an open stream, which may be silent for as long as it likes,
// out of the search for a silent dependency.
func (t *try) unwatched() {
	t.record.mu.Lock()
	defer t.record.mu.Unlock()
	if !t.over {
		t.attempt.Unwatch()
	}
}

// judge returns the verdict on an error of the stream's. Any code but a context's
// is the wire's own word, whatever has ended since.
func (t *try) judge(err error) call.Result {
	ev := t.witness.evidence()
	res := t.record.kit.forbid(classify(t.held, err, ev), ev)
	if code := codes.Code(res.Code); code == codes.Canceled || code == codes.DeadlineExceeded {
		res = t.attempt.Judge(t.record.ctx, res)
	}
	return res
}

// send sends a message on the attempt's stream.
func (t *try) send(m any) error {
	err := t.stream.SendMsg(m)
	if err != nil && err != io.EOF {
		err = t.fail(err)
	}
	return err
}

// fail ends the attempt and the call with an error that a method of the stream's
// returned, and returns what the caller is to see.
func (t *try) fail(err error) error {
	res := t.judge(err)
	if _, first := t.end(res, false); first {
		if final := t.record.finalError(); final != nil {
			return final
		}
		return withStatus(res.Err) // amended away, but there is no message either
	}
	return t.late(res)
}

// late returns what the caller is to see of an error that came when the attempt
// was over. Its context is cancelled then, and a cancelled stream says no more than
// that; or it says again what the end was. Anything else is the server's answer,
// come late.
func (t *try) late(res call.Result) error {
	t.record.concludeWith(res) // whoever ended it may not have come to that yet
	final := t.record.finalError()
	if code := codes.Code(res.Code); final != nil && (code == codes.Canceled || code == status.Code(final)) {
		return final
	}
	return withStatus(res.Err)
}

// onFinish is called by gRPC when it is done with the stream. While the caller
// is inside a method, that method learns of the end itself and knows more; an
// interceptor further in may even repeat the stream then.
func (t *try) onFinish(err error) {
	t.witness.finish(err)
	t.finish.Store(&ended{err})
	if t.record.inside.Load() == 0 {
		t.endUnread()
	}
}

// endUnread ends the attempt, and the call, when nobody reads the stream: its
// context ended or its connection was closed. It may run on a goroutine of gRPC's.
func (t *try) endUnread() {
	defer t.record.contain()
	res := t.judge(t.finish.Load().err)
	if res.Class == call.OK && !t.hasSpoken() {
		// It may be one of the ends that gRPC takes for an OK too soon.
		res.Class = call.Canceled
	}
	if res.Class == call.Canceled || res.Class == call.TimedOut && t.record.ctx.Err() != nil {
		res.Class = call.Canceled // says nothing: nobody waited for an answer
	}
	if _, first := t.end(res, false); !first && t.dropped.Load() {
		t.record.concludeWith(res)
	}
}
