package httpmw

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/call"
)

// park puts a failed response aside before a back-off. Its body is read into
// memory, which gives back the connection and the permit. One that is too large
// for that, or too slow for the patience there is, stays open, without its
// permit, until it is dropped or handed to the caller.
func (a *answer) park(ctx context.Context, patience time.Duration) {
	if a.parked || a.holder == nil {
		return
	}
	a.parked = true
	p := &parkedBody{source: a.resp.Body, holder: a.holder, done: make(chan struct{})}
	p.more.L = &p.mu
	go p.fill() // ends with the attempt's context at the latest
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	a.releasePermit()
	a.resp.Body = p
	a.holder.report()
}

// drop gives up a response. What is not parked is read for a while first, aside
// from the call, so that its connection can be used again.
func (a *answer) drop() {
	a.releasePermit()
	body, holder := a.resp.Body, a.holder // a itself is the call's next answer soon
	if a.parked || holder == nil || holder.ctx.Err() != nil {
		body.Close()
		return
	}
	shut := func() {
		defer holder.contain()
		body.Close()
	}
	timer := time.AfterFunc(drainTime, shut)
	go func() {
		defer func() {
			if timer.Stop() {
				shut()
			}
		}()
		defer holder.contain()
		// One byte more than the limit: a chunked body of just that size has not
		// shown its end before.
		_, _ = io.CopyN(io.Discard, body, drainSize+1)
	}()
}

// forsake gives up a good response that nobody wants: its attempt was cancelled.
func (a *answer) forsake() {
	defer a.resp.Body.Close()
	if a.holder != nil {
		a.holder.end(call.Result{Class: call.Canceled})
	}
}

// parkedBody is a body of which the first part, and maybe all, is in memory.
type parkedBody struct {
	source io.ReadCloser
	holder *holder
	done   chan struct{} // closed when fill has ended

	mu     sync.Mutex
	more   sync.Cond
	kept   []byte
	filled bool  // no more is kept
	err    error // that ended the body, io.EOF or another; nil if there is more
}

var errBodyPanicked = errors.New("httpmw: the base transport's response body panicked while it was read")

// fill reads until the body ends or is too large. A panic of the body's ends it too,
// and goes on where the caller comes by.
func (p *parkedBody) fill() {
	defer close(p.done)
	over := false
	defer func() {
		if !over {
			p.keep(nil, errBodyPanicked, true)
		}
	}()
	defer p.holder.contain()
	var buf [4 << 10]byte
	for size := 0; ; {
		n, err := p.source.Read(buf[:])
		size += n
		if over = p.keep(buf[:n], err, size > drainSize); over {
			return
		}
	}
}

// keep adds a piece, and reports whether it was the last.
func (p *parkedBody) keep(piece []byte, err error, enough bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, piece...)
	p.err = err
	p.filled = err != nil || enough
	p.more.Broadcast()
	return p.filled
}

func (p *parkedBody) Read(b []byte) (int, error) {
	if n, here, err := p.taken(b); here {
		if err == errBodyPanicked {
			p.holder.report()
		}
		return n, err
	}
	return p.source.Read(b)
}

// taken reads what is in memory, and waits for it while it still grows. It is not
// here if it has been read, and the body goes on.
func (p *parkedBody) taken(b []byte) (n int, here bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.kept) == 0 && !p.filled && len(b) > 0 {
		p.more.Wait()
	}
	if len(p.kept) > 0 || len(b) == 0 {
		n = copy(b, p.kept)
		p.kept = p.kept[n:]
		return n, true, nil
	}
	return 0, p.err != nil, p.err
}

func (p *parkedBody) Close() error { return p.source.Close() }
