package httpmw

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// attemptBody is the request body of one attempt.
type attemptBody struct {
	source io.ReadCloser
	again  func() (io.ReadCloser, error) // the request's GetBody
	gate   gate
}

var errAttemptOver = errors.New("httpmw: the attempt that this body belongs to is over")

func (b *attemptBody) Read(p []byte) (int, error) { return b.gate.read(b.source, p, &b.gate.closed) }

func (b *attemptBody) Close() error { return b.gate.closeOnce(b.source, &b.gate.closed) }

// outward returns the body as a transport is to see it.
func (b *attemptBody) outward() io.ReadCloser {
	if inMemory(b.source) {
		if _, ok := b.source.(io.WriterTo); ok {
			return (*memoryBody)(b)
		}
	}
	return b
}

// memoryBody is an attemptBody that can be written in one piece. One that is no memory
// cannot: who waits for it to come from elsewhere must not keep the gate from closing.
type memoryBody attemptBody

func (b *memoryBody) Read(p []byte) (int, error) { return (*attemptBody)(b).Read(p) }

func (b *memoryBody) Close() error { return (*attemptBody)(b).Close() }

func (b *memoryBody) WriteTo(w io.Writer) (int64, error) {
	if !b.gate.enter() {
		return 0, errAttemptOver
	}
	defer b.gate.leave(nil, &b.gate.closed) // if it fails, then in w
	return b.source.(io.WriterTo).WriteTo(w)
}

// reopen is what net/http reopens the body with when it repeats the request by itself.
// What it reads then belongs to the same attempt.
func (b *attemptBody) reopen() (io.ReadCloser, error) {
	source, err := b.again()
	if err != nil {
		return nil, err
	}
	return &reopened{source: source, gate: &b.gate}, nil
}

// reopened is the body of an attempt that net/http repeats by itself.
type reopened struct {
	source io.ReadCloser
	gate   *gate
	closed bool // guarded by gate.mu
}

func (b *reopened) Read(p []byte) (int, error) { return b.gate.read(b.source, p, &b.closed) }

func (b *reopened) Close() error { return b.gate.closeOnce(b.source, &b.closed) }

// abandon lets the transport of a finished attempt read no further. A Read in
// progress is waited for.
func (b *attemptBody) abandon(ctx context.Context, patience time.Duration) {
	b.gate.shut(ctx, patience)
}

// gate keeps a transport that still holds the body of a finished attempt from
// reading on. The zero gate is open.
type gate struct {
	mu      sync.Mutex
	readers int32
	over    bool
	closed  bool          // the attempt's body is
	broken  bool          // a Read failed, and not for the transport's closing the body
	left    chan struct{} // made by who waits, closed when nobody reads any more
}

// read reads from the source of a body, if the gate is open. closed is the body's own.
func (g *gate) read(source io.Reader, p []byte, closed *bool) (n int, err error) {
	if !g.enter() {
		return 0, errAttemptOver
	}
	defer func() { g.leave(err, closed) }() // of a panic there is no error
	return source.Read(p)
}

// closeOnce closes the source of a body.
func (g *gate) closeOnce(source io.Closer, closed *bool) error {
	g.mu.Lock()
	again := *closed
	*closed = true
	g.mu.Unlock()
	if again {
		return nil
	}
	return source.Close()
}

// enter reports whether a Read may begin; leave ends it.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return false
	}
	g.readers++
	return true
}

func (g *gate) leave(err error, closed *bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = g.broken || err != nil && err != io.EOF && !*closed
	if g.readers--; g.readers == 0 && g.left != nil {
		close(g.left)
		g.left = nil
	}
}

// failed reports whether reading the body failed.
func (g *gate) failed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken
}

// shut lets no further Read begin, and reports whether one in progress has ended
// in time.
func (g *gate) shut(ctx context.Context, patience time.Duration) bool {
	left := g.close()
	if left == nil {
		return true
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-left:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// close returns what is closed when nobody reads any more, nil if nobody does.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if g.readers > 0 && g.left == nil {
		g.left = make(chan struct{})
	}
	return g.left
}
