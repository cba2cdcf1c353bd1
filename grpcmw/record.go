package grpcmw

import (
	"context"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// record is one attempt at a stream, from its admission to its end, which comes
// once from whoever is first: a method call of the caller's, gRPC's own goroutine
// when the context ends or the connection is closed, or the collector. gRPC and
// the collector hold the record, so it must not refer to the caller's wrapper.
type record struct {
	ctx     context.Context // the caller's
	held    context.Context // the attempt's
	method  string
	options callOptions
	onPanic func(method string, value any, stack []byte)

	call    holdfast.Call
	attempt holdfast.Attempt
	witness witness

	inside   atomic.Int32          // method calls of the caller's under way, the opening included
	finish   atomic.Pointer[ended] // what gRPC said at the end
	fired    atomic.Bool           // the caller's OnFinish callbacks were called
	panicked atomic.Pointer[any]   // recovered where it could not go on

	mu      sync.Mutex
	over    bool
	final   error // what the end is to the caller
	cleanup runtime.Cleanup
	watched bool // by the collector
}

// ended is the error of gRPC's OnFinish, nil for an OK.
type ended struct{ err error }

// end books the end of the attempt and gives everything back, unless that was
// done before. It reports whether it was first. A panic goes on after that.
func (r *record) end(res call.Result) bool {
	if !r.claim() {
		return false
	}
	verdict := unwound // what a panic leaves standing
	defer func() { r.fire(r.setFinal(verdict.Err)) }()
	defer r.attempt.Release()
	defer func() { r.attempt.Book(r.ctx, verdict) }()
	verdict = r.call.Classify(r.ctx, res)
	return true
}

// unwound is the result of an attempt that a panic or a Goexit ended.
var unwound = call.Result{
	Class: call.ServerFault, Code: int(codes.Internal), NoRetry: true,
	Err: status.Error(codes.Internal, "grpcmw: the stream was ended by a panic"),
}

// claim makes the caller the one who ends the attempt.
func (r *record) claim() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.over = true
	if r.watched {
		r.cleanup.Stop()
	}
	return true
}

// setFinal notes what the end is to the caller, who may yet ask for it again.
func (r *record) setFinal(err error) error {
	err = withStatus(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.final = err
	return err
}

func (r *record) finalError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.final
}

func (r *record) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// fire calls the caller's OnFinish callbacks, once.
func (r *record) fire(err error) {
	if r.fired.CompareAndSwap(false, true) {
		r.options.finish(err)
	}
}

// answered notes the first message. The lock keeps the ticket to one goroutine at
// a time.
func (r *record) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.attempt.Answered()
	}
}

// judge returns the verdict on an error of the stream's. Any code but a context's
// is the wire's own word, whatever has ended since.
func (r *record) judge(err error) call.Result {
	if err == io.EOF {
		err = nil
	}
	res := classify(r.held, err, r.witness.evidence())
	if code := codes.Code(res.Code); code == codes.Canceled || code == codes.DeadlineExceeded {
		res = r.attempt.Judge(r.ctx, res)
	}
	return res
}

// fail ends the attempt with an error that a method of the stream's returned,
// and returns what the caller is to see.
func (r *record) fail(err error) error {
	res := r.judge(err)
	if r.end(res) {
		if final := r.finalError(); final != nil {
			return final
		}
		return withStatus(res.Err) // amended away, but there is no message either
	}
	// Once the attempt is over its context is cancelled, and a cancelled stream
	// says no more than that. Anything else is the server's answer, come late.
	if final := r.finalError(); final != nil && codes.Code(res.Code) == codes.Canceled {
		return final
	}
	return withStatus(res.Err)
}

// onFinish is called by gRPC when it is done with the stream. While the caller
// is inside a method, that method learns of the end itself and knows more; an
// interceptor further in may even repeat the stream then.
func (r *record) onFinish(err error) {
	r.witness.finish(err)
	r.finish.Store(&ended{err})
	if r.inside.Load() == 0 {
		r.endUnread()
	}
}

// endUnread ends the attempt when nobody reads the stream: its context ended or
// its connection was closed. It may run on a goroutine of gRPC's.
func (r *record) endUnread() {
	defer r.contain()
	res := r.judge(r.finish.Load().err)
	if res.Class == call.Canceled || res.Class == call.TimedOut && r.ctx.Err() != nil {
		res.Class = call.Canceled // says nothing: nobody waited for an answer
	}
	if !r.end(res) {
		r.fire(withStatus(res.Err))
	}
}

// contain recovers a panic where it would end the process, and reports it.
func (r *record) contain() {
	value := recover()
	if value == nil {
		return
	}
	if r.onPanic != nil {
		r.onPanic(r.method, value, debug.Stack())
		return
	}
	r.panicked.Store(&value)
}

// enter begins a method call of the caller's.
func (r *record) enter() { r.inside.Add(1) }

// leave ends a method call of the caller's. returned is false if the call is
// being unwound by a panic or a Goexit, which is a failure and goes on.
func (r *record) leave(returned bool) {
	last := r.inside.Add(-1) == 0
	if !returned {
		r.end(unwound)
		return
	}
	if f := r.finish.Load(); last && f != nil && (r.held.Err() != nil || closedHere(f.err)) && !r.isOver() {
		r.endUnread()
	}
	if value := r.panicked.Swap(nil); value != nil {
		panic(*value)
	}
}

// watch lets the collector end the attempt if the caller drops the stream.
func (r *record) watch(s *stream) {
	cleanup := runtime.AddCleanup(s, (*record).collected, r)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanup, r.watched = cleanup, true
	if r.over {
		cleanup.Stop()
	}
}

// collected ends the attempt of a stream that nobody holds any more.
func (r *record) collected() {
	defer r.contain()
	if r.claim() {
		defer r.attempt.Release() // gRPC then says that it is done with the stream
		r.attempt.Book(r.ctx, call.Result{Class: call.Canceled})
	}
}
