package httpmw

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// upload gives each attempt of a call its own copy of the request's body.
//
// A body with GetBody is opened anew. Of one without, what an attempt reads is
// kept up to a limit, so that the next one can read it again and then go on with
// the rest. A request without a body needs nothing.
type upload struct {
	req   *http.Request
	limit int64         // of what is kept
	plain bool          // it is in memory and sent once: nothing is to be watched
	sent  io.ReadCloser // the body of the last attempt, nil before the first
	spare io.ReadCloser // made ready for the next attempt

	mu     sync.Mutex   // guards what follows: a transport may read and close late
	body   *attemptBody // sent, if that needs watching; the caller's goroutine alone writes it
	kept   []byte       // read from req.Body so far, unless lost
	lost   bool         // more was read than may be kept
	broken bool         // reading it failed, and not for the transport's closing it
	last   bool         // no further attempt: a Close is the caller's body's
	closed bool         // req.Body is, or is an attempt's to close
}

func (u *upload) begin(req *http.Request, limit int64, c *holdfast.Call) {
	u.req = req
	u.plain = !c.MayRetry() && inMemory(req.Body)
	if c.MayRepeat() { // else it may be repeated only if nothing of it was read
		u.limit = limit
	}
}

// empty reports whether there is no body to send.
func (u *upload) empty() bool { return u.req.Body == nil || u.req.Body == http.NoBody }

// first returns the body of the first attempt.
func (u *upload) first() io.ReadCloser {
	switch {
	case u.plain:
		return u.req.Body // net/http knows it, and sends it together with the headers
	case u.req.GetBody != nil:
		u.closed = true // with the attempt's body
		return newAttemptBody(u, u.req.Body)
	}
	return newAttemptBody(u, &keeper{upload: u})
}

// reopen returns the body once more.
func (u *upload) reopen() (io.ReadCloser, error) {
	source, err := u.req.GetBody()
	if err == nil && source == nil {
		err = errors.New("httpmw: the request's GetBody returned neither a body nor an error")
	}
	if err != nil {
		return nil, err
	}
	return newAttemptBody(u, source), nil
}

// getBody returns what net/http reopens the body of an attempt with when it
// repeats the request by itself. Such a body belongs to the same attempt.
func (u *upload) getBody(body io.ReadCloser) func() (io.ReadCloser, error) {
	owner, watched := body.(*attemptBody)
	if u.req.GetBody == nil || !watched {
		return u.req.GetBody
	}
	return func() (io.ReadCloser, error) {
		source, err := u.req.GetBody()
		if err != nil {
			return nil, err
		}
		return &attemptBody{upload: u, gate: owner.gate, source: source}, nil
	}
}

// repeatable reports whether a further attempt could send the whole body again.
func (u *upload) repeatable() bool {
	if u.empty() || u.req.GetBody != nil {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.lost
}

// failed reports whether reading the caller's body failed: then so did the
// attempt, and the server has no part in it.
func (u *upload) failed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.broken
}

var (
	errStillRead = errors.New("httpmw: the request's body is still being read for the last attempt")
	errTooLong   = errors.New("httpmw: more of the request's body was sent than is kept for a repeat")
)

// rewind makes ready the body of another attempt. It waits until the last one's
// transport has let go of the body, for behind GetBody there may be one shared
// file; but no longer than for so long.
func (u *upload) rewind(ctx context.Context, patience time.Duration) (err error) {
	if u.empty() || u.spare != nil { // or it was rewound for an upstream that refused
		return nil
	}
	if u.body != nil && !u.body.gate.shut(ctx, patience) {
		return errStillRead
	}
	if !u.repeatable() { // it may have been read on since the attempt ended
		return errTooLong
	}
	if u.req.GetBody != nil {
		u.spare, err = u.reopen()
		return err
	}
	u.spare = newAttemptBody(u, &keeper{upload: u})
	return nil
}

// next returns the body of the attempt that begins now, nil if there is none.
func (u *upload) next() io.ReadCloser {
	if u.empty() {
		return u.req.Body
	}
	next := u.spare
	if u.sent == nil {
		next = u.first()
	}
	u.sent, u.spare = next, nil
	u.mu.Lock()
	defer u.mu.Unlock()
	u.body, _ = next.(*attemptBody)
	return next
}

// reopens reports whether a body can be read by several attempts at once.
func (u *upload) reopens() bool { return u.empty() || u.req.GetBody != nil }

// shared reports whether GetBody hands out the request's own body, wound back, as
// go-retryablehttp's does for an io.ReadSeeker. Two attempts cannot read that at
// once.
func (u *upload) shared() bool {
	if u.empty() {
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
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = true
	if u.body != nil && u.body.done {
		u.closeSource()
	}
}

// closeSource closes the caller's body once. u.mu is held.
func (u *upload) closeSource() {
	if !u.closed {
		u.closed = true
		u.req.Body.Close()
	}
}

// keeper reads the caller's body from its start, out of what was kept and then
// from the body itself, and keeps what it reads. Its Close is the upload's.
type keeper struct {
	upload *upload
	offset int
}

func (k *keeper) Read(p []byte) (int, error) {
	u := k.upload
	u.mu.Lock()
	if k.offset < len(u.kept) {
		n := copy(p, u.kept[k.offset:])
		k.offset += n
		u.mu.Unlock()
		return n, nil
	}
	u.mu.Unlock()
	n, err := u.req.Body.Read(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last || u.lost || int64(len(u.kept)+n) > u.limit {
		u.lost = u.lost || n > 0
		u.kept = nil
		k.offset = 0
		return n, err
	}
	u.kept = append(u.kept, p[:n]...)
	k.offset += n
	return n, err
}

func (k *keeper) Close() error { return nil }
