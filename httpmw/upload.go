package httpmw

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// upload gives each attempt of a call its own copy of the request's body.
//
// A body in memory may be one that needs no gate: see [upload.know]. Another one with
// GetBody is opened anew. Of one without, what an attempt reads is kept for the next one:
// see [spool]. A request without a body needs nothing, and has the zero upload.
type upload struct {
	req    *http.Request                 // nil if it has no body
	plain  bool                          // it is in memory and sent once: nothing is to be watched
	memory io.Reader                     // the body, where what it holds is known; else nil
	text   strings.Reader                // which is this
	again  func() (io.ReadCloser, error) // and opens it for who repeats an attempt; may be nil
	spool  *spool                        // nil if it has GetBody, or is plain or known
	sent   io.ReadCloser                 // the body of the last attempt, nil before the first
	spare  io.ReadCloser                 // made ready for the next attempt
}

func (u *upload) begin(req *http.Request, limit int64, c *holdfast.Call) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	u.req = req
	switch u.plain = !c.MayRetry() && inMemory(req.Body); {
	case u.plain:
	case u.know(limit) || req.GetBody != nil:
	case c.MayRepeat():
		u.spool = &spool{body: req.Body, limit: limit}
	default: // it is repeated only if nothing of it was read
		u.spool = &spool{body: req.Body}
	}
}

// know reports whether what the body holds is known, and need not be gated. It is not of
// a GetBody other than http.NewRequest's: what that one's bodies share nobody knows. Of
// a body without GetBody no more than limit is kept.
func (u *upload) know(limit int64) bool {
	getBody := u.req.GetBody
	if getBody != nil && !opensAnew(getBody) {
		return false
	}
	memory := inside(u.req.Body)
	text, known := textOf(memory)
	if !known || getBody == nil && int64(text.Len()) > limit {
		return false
	}
	u.memory, u.text, u.again = memory, text, getBody
	if _, isString := memory.(*strings.Reader); !isString && getBody != nil {
		own := text // where it is used, so that it is kept only for that
		u.again = func() (io.ReadCloser, error) { return open(own), nil }
	}
	return true
}

// empty reports whether there is no body to send.
func (u *upload) empty() bool { return u.req == nil }

// first returns the body of the first attempt.
func (u *upload) first() io.ReadCloser {
	switch {
	case u.plain:
		return u.req.Body
	case u.spool != nil:
		return &attemptBody{source: u.spool.open()}
	}
	return &attemptBody{source: u.req.Body, again: u.req.GetBody}
}

// reopen returns the body once more.
func (u *upload) reopen() (io.ReadCloser, error) {
	if u.memory != nil {
		return open(u.text), nil
	}
	source, err := u.req.GetBody()
	if err == nil && source == nil {
		err = errors.New("httpmw: the request's GetBody returned neither a body nor an error")
	}
	if err != nil {
		return nil, err
	}
	return &attemptBody{source: source, again: u.req.GetBody}, nil
}

// outward returns the body of an attempt as the base transport is to see it, and what
// net/http reopens it with when it repeats the request by itself.
func (u *upload) outward(body io.ReadCloser) (io.ReadCloser, func() (io.ReadCloser, error)) {
	b, watched := body.(*attemptBody)
	switch {
	case u.memory != nil:
		return body, u.again
	case !watched:
		return body, u.req.GetBody
	case b.again == nil:
		return b.outward(), nil
	}
	return b.outward(), b.reopen
}

// repeatable reports whether a further attempt could send the whole body again.
func (u *upload) repeatable() bool { return u.spool == nil || u.spool.whole() }

// failedReading reports whether reading the caller's body for an attempt failed: then
// so did the attempt, and the server has no part in it.
func failedReading(body io.ReadCloser) bool {
	b, watched := body.(*attemptBody)
	return watched && b.gate.failed()
}

var (
	errStillRead = errors.New("httpmw: the request's body is still being read for the last attempt")
	errTooLong   = errors.New("httpmw: more of the request's body was sent than is kept for a repeat")
)

// rewind makes ready the body of another attempt. It waits until the last one's
// transport has let go of the body, for behind GetBody there may be one shared
// file; but for patience at most.
func (u *upload) rewind(ctx context.Context, patience time.Duration) (err error) {
	if u.empty() || u.memory != nil || u.spare != nil { // or it was rewound for an upstream that refused
		return nil
	}
	if b, watched := u.sent.(*attemptBody); watched && !b.gate.shut(ctx, patience) {
		return errStillRead
	}
	if !u.repeatable() { // it may have been read on since the attempt ended
		return errTooLong
	}
	if u.spool != nil {
		u.spare = &attemptBody{source: u.spool.open()}
		return nil
	}
	u.spare, err = u.reopen()
	return err
}

// next returns the body of the attempt that begins now.
func (u *upload) next() io.ReadCloser {
	next := u.spare
	switch {
	case u.memory != nil:
		next = open(u.text)
		if u.sent == nil {
			skip(u.memory)
		}
	case u.sent == nil:
		next = u.first()
	}
	u.sent, u.spare = next, nil
	return next
}

// reopens reports whether a body can be read by several attempts at once.
func (u *upload) reopens() bool { return u.empty() || u.memory != nil || u.req.GetBody != nil }

// shared reports whether GetBody hands out the request's own body, wound back, as
// go-retryablehttp's does for an io.ReadSeeker. Two attempts cannot read that at
// once.
func (u *upload) shared() bool {
	if u.empty() || u.memory != nil {
		return false
	}
	again, err := u.req.GetBody()
	if err != nil || again == nil {
		return true
	}
	if reflect.ValueOf(again).Comparable() && reflect.ValueOf(u.req.Body).Comparable() && again == u.req.Body {
		return true
	}
	again.Close()
	return false
}

// finish says that no further attempt follows: the caller's body is closed now,
// or, while the last attempt still reads it, when its transport closes it. With
// unwound that transport will not.
func (u *upload) finish(unwound bool) {
	if u.empty() {
		return
	}
	if u.sent == nil { // nothing was ever sent
		u.req.Body.Close()
		return
	}
	if u.spare != nil { // nor was this one
		u.spare.Close()
	}
	if unwound {
		u.sent.Close()
	}
	if u.spool != nil {
		u.spool.finish()
	}
}
