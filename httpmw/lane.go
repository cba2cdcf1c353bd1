package httpmw

import (
	"context"
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/answers"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// lane is one attempt at the request, with all that it does not share with those
// that may run beside it. It does not refer to its exchange, or that would have to be on
// the heap.
type lane struct {
	ctx   context.Context // the call's
	n     int             // its number in the call
	hedge bool            // sent while another one runs

	attempt holdfast.Attempt // what it holds, until its answer does
	out     *outbound        // room for its request; nil if there is none yet
	body    io.ReadCloser    // nil if there is none to send
	resp    *http.Response   // as it came
	open    bool             // it is under way, and not yet judged
	answer  answer
	good    bool // the answer is not one that says the attempt failed
}

// begin makes a new lane the n-th attempt.
func (l *lane) begin(ctx context.Context, n int, out *outbound) {
	l.ctx, l.n, l.out = ctx, n, out
	if out != nil {
		l.attempt.In(&out.room)
	}
}

// Held returns what the attempt holds until the end of its answer.
func (l *lane) Held() *holdfast.Attempt {
	if h := l.answer.holder; h != nil {
		return &h.attempt
	}
	return &l.attempt
}

// run sends the request of an attempt that was admitted. Its end is in res. Should it
// be unwound by a panic or a Goexit in the base, a hook or a classifier, unwind ends it.
func (l *lane) run(x *exchange, held context.Context, res *call.Result) {
	l.open = true
	if !l.hedge {
		x.discard() // the failed answer before, now that another attempt is made
	}
	var trace *sendTrace
	passes := x.call.Passes(&l.attempt)
	if x.call.OnlyUnsent() {
		trace, passes = &sendTrace{limits: l.attempt.Limits()}, false
		held = trace.on(held)
	}
	began := x.call.Trying()
	out, err := l.request(x, held, passes)
	if err != nil {
		*res = x.call.Classify(l.ctx, call.Result{Class: call.Permanent, Err: err, NotSent: true})
		x.call.Tried(l.ctx, l.n, began, res)
		l.end(res, mono.Now())
		return
	}
	var asked answers.Stamp
	if x.keep != nil {
		asked = x.transport.cache.Stamp()
	}
	l.resp, err = sound(x.transport.base.RoundTrip(out))
	now := mono.Now()
	if err == nil {
		err = l.opened(x.transport.options.first, now)
	}
	l.classify(x, err, out.URL.Scheme, trace, res)
	x.call.Tried(l.ctx, l.n, began, res)
	if err != nil {
		l.end(res, mono.Now())
		return
	}
	if l.attempt.AwaitsFirst() {
		now = mono.Now() // it is later
	}
	l.attempt.AnsweredAt(now)
	if bodyless(l.resp) {
		l.end(res, now)
	} else {
		l.answer.holder = l.keep(x, res)
	}
	l.answer.resp, l.good = l.resp, res.Class == call.OK
	if x.keep != nil {
		l.answer.sent, l.answer.asked = out.Header, asked
	}
}

// end books the attempt's result, and gives back what it holds.
func (l *lane) end(res *call.Result, now mono.Instant) {
	l.attempt.EndAt(l.ctx, res, now)
	l.open = false
}

// unwind ends an attempt that was unwound, also by the panic of a hook that was told of
// its end.
func (l *lane) unwind() {
	if !l.open {
		return
	}
	l.open = false
	defer l.attempt.Unwind(l.ctx, call.Result{Class: call.ServerFault})
	if l.hedge && l.body != nil { // that of another attempt is the upload's to close
		defer l.body.Close()
	}
	if l.resp != nil {
		l.resp.Body.Close()
	}
}

// keep lets the body of the response have what the attempt holds, until it ends.
func (l *lane) keep(x *exchange, res *call.Result) *holder {
	l.open = false
	if !isSwitch(l.resp) {
		x.call.WatchIdle(&l.attempt, l.resp.ContentLength >= 0)
	}
	h, b := newHolder(l.ctx, l.resp)
	h.method, h.onPanic = x.call.Info().Method, x.transport.options.onPanic
	l.attempt.Move(&h.attempt)
	h.keep(l.resp, b, res)
	return h
}

// opened ends the limits that the headers and the first byte of the body end. If
// one has passed before, the attempt's context is cancelled and the response of
// no use.
func (l *lane) opened(arrived func(*http.Response, []byte) bool, now mono.Instant) error {
	resp := l.resp
	err := l.attempt.OpenedAt(now)
	if err == nil && l.attempt.AwaitsFirst() && !bodyless(resp) && ofStatus(resp.StatusCode).Class == call.OK && !isSwitch(resp) {
		err = awaitFirst(resp, arrived)
	}
	if late := l.attempt.Delivered(); late != nil {
		err = late
	}
	if err != nil {
		l.resp = nil
		resp.Body.Close()
	}
	return err
}

// racing is a lane that others may run beside.
type racing struct {
	lane
	exchange *exchange
}

// Run implements [holdfast.Lane].
func (r *racing) Run(held context.Context) (res call.Result) {
	returned := false
	defer func() {
		if !returned {
			r.unwind()
		}
	}()
	r.run(r.exchange, held, &res)
	returned = true
	return res
}

// End gives the call the answer of the attempt that has won, and lets go of what
// another one has brought or still reads.
func (r *racing) End(won bool) {
	if won {
		r.exchange.answer = r.answer
		return
	}
	if body, watched := r.body.(*attemptBody); watched {
		defer body.abandon(r.ctx, drainTime)
	}
	switch {
	case r.answer.resp == nil:
	case r.good:
		r.answer.forsake()
	default:
		r.answer.drop()
	}
}
