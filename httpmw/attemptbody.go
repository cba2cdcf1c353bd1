package httpmw

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"
)

// attemptBody is the request body of one attempt.
type attemptBody struct {
	upload *upload
	source io.ReadCloser
	gate   *gate // own, or that of the attempt that net/http repeats
	own    gate
	done   bool // closed; guarded by upload.mu
}

func newAttemptBody(u *upload, source io.ReadCloser) *attemptBody {
	b := &attemptBody{upload: u, source: source}
	b.gate = &b.own
	return b
}

var errAttemptOver = errors.New("httpmw: the attempt that this body belongs to is over")

func (b *attemptBody) Read(p []byte) (int, error) {
	if !b.gate.enter() {
		return 0, errAttemptOver
	}
	defer b.gate.leave()
	n, err := b.source.Read(p)
	if err != nil && err != io.EOF {
		b.upload.mu.Lock()
		b.upload.broken = b.upload.broken || !b.done
		b.upload.mu.Unlock()
	}
	return n, err
}

func (b *attemptBody) Close() error {
	b.upload.mu.Lock()
	again := b.done
	b.done = true
	if b == b.upload.body && b.upload.last {
		b.upload.closeSource()
	}
	b.upload.mu.Unlock()
	if again {
		return nil
	}
	return b.source.Close()
}

// abandon lets the transport of a finished attempt read no further. A Read in
// progress is waited for.
func (b *attemptBody) abandon(ctx context.Context, patience time.Duration) {
	b.gate.shut(ctx, patience)
}

// gate keeps a transport that still holds the body of a finished attempt from
// reading on. The zero gate is open.
type gate struct {
	mu      sync.Mutex
	readers int
	over    bool
	left    chan struct{} // made by who waits, closed when nobody reads any more
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

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.readers--; g.readers == 0 && g.left != nil {
		close(g.left)
		g.left = nil
	}
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

// inMemory reports whether body is a reader of memory, of the types that net/http
// looks for too: it sends such a body in one write with the headers.
func inMemory(body io.ReadCloser) bool {
	var r io.Reader = body
	if t := reflect.TypeOf(body); t == nopCloser || t == nopCloserWriterTo {
		r, _ = reflect.ValueOf(body).Field(0).Interface().(io.Reader)
	}
	switch r.(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		return true
	}
	return false
}

var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(new(bytes.Reader)))
)
