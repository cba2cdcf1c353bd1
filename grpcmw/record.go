package grpcmw

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// record is one streaming call. gRPC and the collector hold it, so it must not
// refer to the caller's wrapper.
type record struct {
	kit     *Interceptors
	ctx     context.Context // the caller's
	method  string
	options callOptions
	call    holdfast.Call

	now   atomic.Pointer[try] // the attempt under way, or the last
	first try

	inside   atomic.Int32        // method calls of the caller's under way, the opening included
	fired    atomic.Bool         // the caller's OnFinish callbacks were called
	panicked atomic.Pointer[any] // recovered where it could not go on

	attempts   atomic.Int32 // begun
	sentBefore atomic.Bool  // one before the last may have reached the server

	mu      sync.Mutex
	over    bool  // the call is
	watched bool  // by the collector
	final   error // what the end is to the caller
	cleanup runtime.Cleanup
}

func newRecord(kit *Interceptors, method string, options callOptions) *record {
	r := &record{kit: kit, method: method, options: options}
	r.first.record, r.first.stream = r, unopened{r}
	r.now.Store(&r.first)
	return r
}

// ownTargets says that the attempts have targets of their own for what gRPC tells
// the caller of header, trailer and peer.
func (r *record) ownTargets() bool { return r.call.MayRetry() }

// concludeWith ends the call with the end of an attempt. It does not ask the call,
// which may be moving on to another upstream on another goroutine.
func (r *record) concludeWith(res call.Result) {
	r.conclude(holdfast.CallEnd{Info: r.now.Load().info, Result: res, Attempts: int(r.attempts.Load()), Err: res.Err})
}

// conclude ends the call, once.
func (r *record) conclude(end holdfast.CallEnd) {
	end.Err = r.call.OfWrite(&end, r.sentBefore.Load())
	err := withStatus(end.Err)
	r.mu.Lock()
	first := !r.over
	if first {
		r.over, r.final = true, err
		if r.watched {
			r.cleanup.Stop()
		}
		if r.ownTargets() {
			r.options.fill(&r.now.Load().witness)
		}
	}
	r.mu.Unlock()
	if first {
		defer r.fire(err)
		r.call.ReturnAs(r.ctx, end)
	}
}

func (r *record) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

func (r *record) finalError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.final
}

// fire calls the caller's OnFinish callbacks, once.
func (r *record) fire(err error) {
	if r.fired.CompareAndSwap(false, true) {
		r.options.finish(err)
	}
}

// enter begins a method call of the caller's.
func (r *record) enter() { r.inside.Add(1) }

// leave ends a method call of the caller's. returned is false if the call is
// being unwound by a panic or a Goexit, which is a failure and goes on.
func (r *record) leave(returned bool) {
	last := r.inside.Add(-1) == 0
	t := r.now.Load()
	if !returned {
		r.concludeWith(unwound) // first: who changes the attempt asks for it
		r.now.Load().end(unwound, false)
		return
	}
	if f := t.finish.Load(); last && f != nil && (t.held.Err() != nil || closedHere(f.err)) && !t.isOver() {
		t.endUnread()
	}
	if value := r.panicked.Swap(nil); value != nil {
		panic(*value)
	}
}

// contain recovers a panic where it would end the process, and reports it.
func (r *record) contain() {
	value := recover()
	if value == nil {
		return
	}
	if handle := r.kit.config.onPanic; handle != nil {
		handle(r.method, value, debug.Stack())
		return
	}
	r.panicked.Store(&value)
}

// watch lets the collector end the call if the caller drops the stream.
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
	if t := r.now.Load(); t.claim() {
		t.dropped.Store(true)
		defer t.attempt.Release() // gRPC then says that it is done with the stream
		t.attempt.Book(r.ctx, call.Result{Class: call.Canceled})
	}
}
