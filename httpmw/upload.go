package httpmw

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/holdfast-go/holdfast"
)

// upload gives each attempt of a call its own copy of the request's body.
//
// A body with GetBody is opened anew. Of one without, what an attempt reads is
// kept up to a limit, so that the next one can read it again and then go on with
// the rest. A request without a body needs nothing.
type upload struct {
	req   *http.Request
	limit int64        // of what is kept
	spare *attemptBody // made ready for the next attempt

	mu     sync.Mutex   // guards what follows: a transport may read and close late
	body   *attemptBody // of the last attempt, nil before the first; the caller's goroutine alone writes it
	kept   []byte       // read from req.Body so far, unless lost
	lost   bool         // more was read than may be kept
	last   bool         // no further attempt: a Close is the caller's body's
	closed bool         // req.Body is
}

func newUpload(req *http.Request, limit int64, c *holdfast.Call) upload {
	if !c.MayRepeat() {
		limit = 0 // it may be repeated only if nothing of it was read
	}
	return upload{req: req, limit: limit}
}

// empty reports whether there is no body to send.
func (u *upload) empty() bool { return u.req.Body == nil || u.req.Body == http.NoBody }

// first returns the body of the first attempt.
func (u *upload) first() *attemptBody {
	body := newAttemptBody(u)
	if u.req.GetBody != nil {
		body.source = u.req.Body
		u.closed = true // with the attempt's body
	} else {
		body.source = &keeper{upload: u}
	}
	return body
}

// getBody returns what net/http reopens the body with when it repeats a request
// by itself. Such a body belongs to the same attempt.
func (u *upload) getBody(owner *attemptBody) func() (io.ReadCloser, error) {
	if u.req.GetBody == nil {
		return nil
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

// rewind makes ready the body of another attempt. It waits until the last one's
// transport has let go of the body: behind GetBody there may be one shared file.
func (u *upload) rewind(ctx context.Context) error {
	if u.empty() {
		return nil
	}
	if err := u.body.gate.shut(ctx); err != nil {
		return err
	}
	next := newAttemptBody(u)
	if u.req.GetBody != nil {
		source, err := u.req.GetBody()
		if err != nil {
			return err
		}
		next.source = source
	} else {
		next.source = &keeper{upload: u}
	}
	u.spare = next
	return nil
}

// next returns the body of the attempt that begins now.
func (u *upload) next() *attemptBody {
	next := u.spare
	if u.body == nil {
		next = u.first()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.body, u.spare = next, nil
	return next
}

// reopens reports whether a body can be read by several attempts at once.
func (u *upload) reopens() bool { return u.empty() || u.req.GetBody != nil }

// beside returns another body while that of the last attempt may still be read.
func (u *upload) beside() (*attemptBody, error) {
	source, err := u.req.GetBody()
	if err != nil {
		return nil, err
	}
	body := newAttemptBody(u)
	body.source = source
	return body, nil
}

// finish says that no further attempt follows: the caller's body is closed now,
// or, while the last attempt still reads it, when its transport closes it.
func (u *upload) finish() {
	if u.empty() {
		return
	}
	if u.body == nil { // nothing was ever sent
		u.req.Body.Close()
		return
	}
	if u.spare != nil { // nor was this one
		u.spare.Close()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = true
	if u.body.done {
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

// attemptBody is the request body of one attempt.
type attemptBody struct {
	upload *upload
	gate   *gate
	source io.Reader
	done   bool // closed; guarded by upload.mu
}

func newAttemptBody(u *upload) *attemptBody {
	return &attemptBody{upload: u, gate: newGate()}
}

func (b *attemptBody) Read(p []byte) (int, error) {
	if !b.gate.enter() {
		return 0, errAttemptOver
	}
	defer b.gate.leave()
	return b.source.Read(p)
}

func (b *attemptBody) Close() error {
	b.upload.mu.Lock()
	again := b.done
	b.done = true
	if b == b.upload.body && b.upload.last {
		b.upload.closeSource()
	}
	b.upload.mu.Unlock()
	if closer, ok := b.source.(io.Closer); ok && !again {
		return closer.Close()
	}
	return nil
}

// abandon lets the transport of a finished attempt read no further. A Read in
// progress is waited for.
func (b *attemptBody) abandon(ctx context.Context) { _ = b.gate.shut(ctx) }

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

var errAttemptOver = errors.New("httpmw: the attempt that this body belongs to is over")

// gate keeps a transport that still holds the body of a finished attempt from
// reading on. A channel, not a mutex, so that waiting for a Read in progress can
// be given up.
type gate struct {
	free chan struct{} // holds one token while nobody reads
	over bool          // guarded by the token
}

func newGate() *gate {
	g := &gate{free: make(chan struct{}, 1)}
	g.free <- struct{}{}
	return g
}

// enter reports whether a Read may begin; leave ends it.
func (g *gate) enter() bool {
	<-g.free
	if g.over {
		g.leave()
		return false
	}
	return true
}

func (g *gate) leave() { g.free <- struct{}{} }

// shut lets no further Read begin and waits for one in progress.
func (g *gate) shut(ctx context.Context) error {
	select {
	case <-g.free:
		g.over = true
		g.leave()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
