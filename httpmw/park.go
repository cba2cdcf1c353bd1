package httpmw

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/call"
)

// park puts a failed response aside before a back-off. Its body is read into
// memory, which gives back the connection and the permit. One that is too large
// or too slow for that stays open, without its permit, until it is dropped or
// handed to the caller.
func (a *answer) park(ctx context.Context) {
	if a.parked || a.resp.Body == http.NoBody {
		return
	}
	a.parked = true
	p := &parkedBody{source: a.resp.Body, done: make(chan struct{})}
	go p.fill() // ends with the attempt's context at the latest
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	a.holder.attempt.ReleasePermit()
	a.resp.Body = p
}

// drop gives up a response. What is not parked is read for a while first, aside
// from the call, so that its connection can be used again.
func (a *answer) drop() {
	a.holder.attempt.ReleasePermit()
	body := a.resp.Body
	if a.parked || body == http.NoBody || a.holder.ctx.Err() != nil {
		body.Close()
		return
	}
	p := &parkedBody{source: body, done: make(chan struct{})}
	timer := time.AfterFunc(drainTime, func() { body.Close() })
	go func() {
		p.fill()
		if timer.Stop() {
			body.Close()
		}
	}()
}

// forsake gives up a good response that nobody wants: its attempt was cancelled.
func (a *answer) forsake() {
	defer a.resp.Body.Close()
	a.holder.end(call.Result{Class: call.Canceled})
}

// parkedBody is a body of which the first part, and maybe all, is in memory.
type parkedBody struct {
	source io.ReadCloser
	done   chan struct{} // closed when fill has ended; guards the rest
	kept   []byte
	err    error // that ended the body, io.EOF or another; nil if there is more
}

// fill reads until the body ends or is too large.
func (p *parkedBody) fill() {
	defer close(p.done)
	// One byte more than the limit: a chunked body of just that size has not
	// shown its end before.
	kept, err := io.ReadAll(io.LimitReader(p.source, drainSize+1))
	p.kept, p.err = kept, err
	if err == nil && len(kept) <= drainSize {
		p.err = io.EOF
	}
}

func (p *parkedBody) Read(b []byte) (int, error) {
	<-p.done
	if len(p.kept) > 0 {
		n := copy(b, p.kept)
		p.kept = p.kept[n:]
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.source.Read(b)
}

func (p *parkedBody) Close() error { return p.source.Close() }
