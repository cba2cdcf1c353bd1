package httpmw

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/answers"
)

// What is read of a failed response, so that its connection can be used again,
// before the response is given up or put aside.
const (
	drainSize = 64 << 10
	drainTime = 250 * time.Millisecond
)

// answer is the response of an attempt, with what the attempt holds. The zero answer
// is none.
type answer struct {
	resp   *http.Response
	holder *holder // nil if it has no body: the attempt has ended
	parked bool

	upstream int           // that it comes from, if there are several
	sent     http.Header   // what it answers, if it may be stored
	asked    answers.Stamp // and when that was sent
}

// keep makes the response's body give back what the attempt holds at its end. A status
// that says the attempt failed is booked at once, a good one when the body has come
// whole or is no longer wanted.
func (h *holder) keep(resp *http.Response, b *body, res *call.Result) {
	if res.Class != call.OK {
		h.bookNow(resp, res)
	}
	b.source, b.holder, b.good = resp.Body, h, *res
	if onlyCollected(h.ctx, resp) {
		b.cleanup = runtime.AddCleanup(b, (*holder).abandon, h)
	} else {
		b.stop = context.AfterFunc(h.ctx, h.abandon)
	}
	resp.Body = b
	if isSwitch(resp) {
		resp.Body = upgraded(b)
	}
}

// bookNow books a status that says the attempt failed.
func (h *holder) bookNow(resp *http.Response, res *call.Result) {
	booked := false
	defer func() {
		if !booked { // a hook panicked: nobody will see the body
			resp.Body.Close()
			h.attempt.Release()
		}
	}()
	h.attempt.Book(h.ctx, *res)
	booked = true
}

// releasePermit gives back the permit alone of what the attempt holds.
func (a *answer) releasePermit() {
	if a.holder != nil {
		a.holder.attempt.ReleasePermit()
	}
}

// bodyless reports whether the response has no body to wait for.
func bodyless(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusNoContent, http.StatusNotModified:
		return true
	}
	return resp.Body == http.NoBody || resp.Request != nil && resp.Request.Method == http.MethodHead
}

// body is a response body that ends its attempt: at EOF, an error or Close,
// whichever comes first, or else with the caller's context, or if that can never
// end, when nobody has the body any more.
type body struct {
	source  io.ReadCloser
	holder  *holder
	good    call.Result
	stop    func() bool
	cleanup runtime.Cleanup
}

func (b *body) Read(p []byte) (int, error) {
	b.holder.report()
	n, err := b.holder.read(b.source, p, &b.good)
	if err != nil {
		b.settled()
	}
	return n, err
}

func (b *body) Close() error {
	defer b.settled() // a hook may panic in end
	closed := false
	defer func() {
		if !closed { // a panic or a Goexit in the base
			b.holder.end(call.Result{Class: call.ServerFault})
		}
	}()
	err := b.source.Close()
	closed = true
	b.holder.end(b.good)
	b.holder.report()
	return err
}

// settled calls off what would end the attempt otherwise.
func (b *body) settled() {
	if b.stop != nil {
		b.stop()
		return
	}
	b.cleanup.Stop()
}

// upgraded returns the body of a 101 response: a connection, which ends only at
// Close and is written to as well.
func upgraded(b *body) io.ReadCloser {
	w, ok := b.source.(io.Writer)
	if !ok {
		return b
	}
	c := connection{b, w}
	if half, ok := b.source.(interface{ CloseWrite() error }); ok {
		return &halfConnection{c, half}
	}
	return &c
}

type connection struct {
	*body
	io.Writer
}

// Read passes EOF on: the other half may still be written to.
func (c *connection) Read(p []byte) (int, error) { return c.source.Read(p) }

type halfConnection struct {
	connection
	half interface{ CloseWrite() error }
}

func (c *halfConnection) CloseWrite() error { return c.half.CloseWrite() }
