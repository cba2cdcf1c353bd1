package httpmw

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/timeout"
)

// holder has what an attempt holds while its response body goes on. Where the wrapper of
// the body ends it too when that is collected, it must not refer to the wrapper.
type holder struct {
	attempt holdfast.Attempt
	ctx     context.Context // the caller's
	method  string
	onPanic func(method string, value any, stack []byte)

	reading, abandoned atomic.Bool
	panicked           atomic.Pointer[any] // recovered where it could not go on
}

// newHolder returns a holder and a wrapper for the body of a response. They are one
// piece unless the collector has to find the wrapper alone.
func newHolder(ctx context.Context, resp *http.Response) (*holder, *body) {
	if onlyCollected(ctx, resp) {
		return &holder{ctx: ctx}, new(body)
	}
	var both struct {
		holder
		body
	}
	both.ctx = ctx
	return &both.holder, &both.body
}

// onlyCollected reports whether nothing ends an attempt whose body nobody uses any more,
// but the collector: a context that can end does, save for an upgraded connection, which
// lives on beyond its request's context.
func onlyCollected(ctx context.Context, resp *http.Response) bool {
	return ctx.Done() == nil || isSwitch(resp)
}

// end books the result, unless one is booked, and gives everything back.
func (h *holder) end(res call.Result) {
	defer h.attempt.Release() // a hook may panic in Book
	h.attempt.Book(h.ctx, res)
}

// fail ends the attempt with an error from reading its body, and returns the
// error for the caller: the wire's own, unless the kit's limit broke the body.
func (h *holder) fail(err error) error {
	res := h.attempt.Judge(h.ctx, call.Result{Class: call.Unavailable, Err: err})
	h.end(res)
	if errors.Is(res.Err, timeout.ErrExceeded) {
		return res.Err
	}
	return err
}

// abandon ends the attempt because its caller's context is done. A Read that is
// waiting then knows better what became of the body, and ends it itself.
// It runs on a goroutine that is not the caller's.
func (h *holder) abandon() {
	defer h.contain()
	h.abandoned.Store(true)
	if h.reading.Load() {
		h.attempt.Release()
		return
	}
	h.end(call.Result{Class: call.Canceled})
}

// contain recovers a panic where it would end the process, and reports it: to the
// handler, or else to whoever uses the body next.
func (h *holder) contain() {
	value := recover()
	switch {
	case value == nil:
	case h.onPanic != nil:
		h.onPanic(h.method, value, debug.Stack())
	default:
		h.panicked.Store(&value)
	}
}

// report lets a panic that was contained go on.
func (h *holder) report() {
	if value := h.panicked.Swap(nil); value != nil {
		panic(*value)
	}
}

// read reads from body and ends the attempt if the body has ended. Where it has
// not, a context that was done in the meantime is made good.
func (h *holder) read(body io.Reader, p []byte, good *call.Result) (int, error) {
	h.reading.Store(true)
	h.attempt.BeginWait()
	returned := false
	defer func() {
		if !returned { // a panic or a Goexit in the base
			h.end(call.Result{Class: call.ServerFault})
		}
	}()
	n, err := body.Read(p)
	returned = true
	late := h.attempt.EndWait()
	switch {
	case err == nil:
		h.reading.Store(false)
		if h.abandoned.Load() {
			h.end(call.Result{Class: call.Canceled})
		}
	case err == io.EOF && late != nil:
		// A server that sees the cancel may well end its answer in good order,
		// and a body of unknown length then looks whole.
		err = h.fail(late)
	case err == io.EOF:
		h.end(*good)
	default:
		err = h.fail(err)
	}
	return n, err
}

func isSwitch(resp *http.Response) bool {
	return resp.StatusCode == http.StatusSwitchingProtocols
}
