package httpmw

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
)

// exchange is one call under way: the attempts at one request. Unless these may race,
// it stays on its maker's stack: what may outlive the call does not refer to it.
type exchange struct {
	transport *Transport
	call      holdfast.Call
	req       *http.Request
	upload    upload
	out       *outbound   // room for the first attempt, until that takes it
	lane      lane        // the last attempt, unless it raced
	answer    answer      // its
	res       call.Result // and its end
	shared    bool        // its attempts do not race, since they cannot read the body at once
	keep      *keep       // nil if it has nothing to do with stale answers
	given     *given      // takes a fallback's answer; nil if there is no fallback
}

// begin begins the call. If it does not come to that, by an error or by a hook that
// panics, the body is closed.
func (x *exchange) begin(m *holdfast.Method, info call.Info, keyed bool) (ctx context.Context, err error) {
	begun := false
	defer func() {
		if !begun {
			closeBody(x.req)
		}
	}()
	terms := holdfast.Terms{Keyed: keyed, Upstreams: x.transport.failover.upstreamList()}
	if m.MayRetry() {
		x.out = new(outbound)
		terms.Room = &x.out.room
	}
	ctx, err = x.call.Begin(x.req.Context(), m, info, terms)
	if begun = err == nil; begun {
		x.upload.begin(x.req, x.transport.options.bufferLimit, &x.call)
	}
	return ctx, err
}

// apart returns an exchange, just begun, for attempts that may race: on the heap.
func (x *exchange) apart() *exchange {
	return &exchange{transport: x.transport, call: x.call, req: x.req, upload: x.upload, out: x.out}
}

// run makes the call by attempts one after the other, each of which may be a race.
func (x *exchange) run(ctx context.Context, attempt func(context.Context)) (resp *http.Response, err error) {
	unwound := true
	defer func() { x.close(unwound) }() // a panic or a Goexit included
	x.keep = x.transport.keepFor(&x.call, x.req)
	if x.keep != nil || x.call.Computes() {
		x.given = takeGiven(&x.call)
	}
	x.shared = x.call.Hedged() && (!x.upload.reopens() || x.upload.shared())
	var prepare func(context.Context) error
	if x.call.MayRetry() {
		prepare = x.prepare
	}
	for x.call.Next(ctx, &x.res, prepare) {
		attempt(ctx)
	}
	resp, err = x.finish(ctx)
	x.call.Return(ctx, err) // a hook may panic: nobody gets the answer then
	unwound = false
	return resp, err
}

// attempt makes one attempt. What it leaves open, the answer holds.
func (x *exchange) attempt(ctx context.Context) {
	l := &x.lane
	if l.n > 0 { // it was used
		*l = lane{}
	}
	l.begin(ctx, x.call.Attempt(), x.room())
	held := x.call.OpenHeld(ctx, &l.attempt, &x.res)
	if held == nil {
		return
	}
	l.run(x, held, &x.res)
	if x.answer = l.answer; x.answer.resp != nil && x.transport.failover != nil {
		x.answer.upstream = x.call.Upstream()
	}
}

// race makes an attempt and hedges it.
func (x *exchange) race(ctx context.Context) {
	if x.shared {
		x.attempt(ctx)
		return
	}
	first := x.call.Attempt()
	x.res = x.call.Race(ctx, true, func(n int) holdfast.Lane {
		r := &racing{exchange: x}
		r.begin(ctx, n, x.room())
		r.hedge = n > first
		return r
	})
}

// room returns room for the first attempt's request, once.
func (x *exchange) room() *outbound {
	out := x.out
	x.out = nil
	return out
}

// sound holds a base transport to the RoundTripper contract.
func sound(resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, err
	case resp == nil:
		return nil, errors.New("httpmw: the base transport returned neither a response nor an error")
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	return resp, nil
}

// classify gives the attempt its verdict. Nobody looks at the error again.
func (l *lane) classify(x *exchange, err error, scheme string, trace *sendTrace, res *call.Result) {
	o, resp := &x.transport.options, l.resp
	if err == nil && good(resp.StatusCode) && o.finalBy == "" && o.classifier == nil && !x.call.Amends() && x.upload.spool == nil {
		*res = call.Result{Class: call.OK, Code: resp.StatusCode} // as below, at a fraction of the price
		return
	}
	switch {
	case err != nil && isCanceled(x.req):
		*res = call.Result{Class: call.Canceled, Err: err}
	case err != nil && failedReading(l.body) && l.ctx.Err() == nil:
		// Were the caller gone, the body might have failed for that.
		*res = call.Result{Class: call.Permanent, Err: err}
	case err != nil && trace.gaveUp():
		*res = call.Result{Class: call.Unavailable, Err: errSentAway}
	case err != nil:
		*res = ofError(err, scheme, trace.sent())
		resp = nil // of no use: a limit has passed since
	default:
		*res = ofStatus(resp.StatusCode)
		if o.asksOn[res.Code] {
			res.RetryAfter = retryAfter(resp.Header)
		}
		if o.finalBy != "" && len(resp.Header[o.finalBy]) > 0 {
			res.NoRetry = true
		}
	}
	*res = l.attempt.Judge(l.ctx, *res)
	if o.classifier != nil {
		*res = o.classifier(resp, err, *res)
	}
	*res = x.call.Classify(l.ctx, *res)
	if !x.upload.repeatable() {
		x.tellTooLong(*res)
		res.NoRetry = true
	}
}

// tellTooLong tells of an attempt that is not repeated for the length of its body
// alone.
func (x *exchange) tellTooLong(res call.Result) {
	o := &x.transport.options
	if o.onTooLong != nil && x.call.MayRepeat() && retry.Repeatable(res, call.ReadOnly, true) {
		o.onTooLong(x.call.Info().Method, o.bufferLimit)
	}
}

// isCanceled reports whether the caller has cancelled in the old way.
func isCanceled(req *http.Request) bool {
	select {
	case <-req.Cancel: //lint:ignore SA1019 Who uses it still is to be understood.
		return true
	default:
		return false
	}
}

// prepare makes ready for a repeat while the back-off runs, or for another upstream:
// the failed answer gives back what it holds, and the body is rewound. Neither may
// take the call beyond its time.
func (x *exchange) prepare(ctx context.Context) error {
	switch {
	case x.answer.resp == nil:
	case x.call.Moving(): // to another upstream, where nothing is waited for
		x.answer.releasePermit()
	default:
		x.answer.park(ctx, min(drainTime, x.call.TimeLeft()))
	}
	return x.upload.rewind(ctx, min(drainTime, x.call.TimeLeft()))
}

// close ends what is left of the call. Where it was unwound by a panic or a Goexit
// nobody gets the answer.
func (x *exchange) close(unwound bool) {
	if unwound {
		x.unwind()
		return
	}
	x.upload.finish(false)
}

func (x *exchange) unwind() {
	defer x.call.Unwound()
	defer x.discard()
	defer x.given.drop()
	defer x.upload.finish(true)
	x.lane.unwind()
}

// discard drops the answer of an attempt that was followed by another, or whose
// call ended otherwise.
func (x *exchange) discard() {
	if x.answer.resp != nil {
		x.answer.drop()
		x.answer = answer{}
	}
}

// finish ends the call: with the fallback's answer, the last response or the
// error.
func (x *exchange) finish(ctx context.Context) (*http.Response, error) {
	answer, err := x.call.Fallback(ctx)
	if answer != nil {
		x.discard()
		return x.substitute(answer.(*http.Response)), nil // which given has seen
	}
	x.given.drop()
	if err != nil || x.answer.resp == nil {
		x.discard()
		return nil, err
	}
	resp, m := x.answer.resp, mark{stopped: x.call.Stopped()}
	if f := x.transport.failover; f != nil {
		m.upstream = f.received(resp, x.answer.upstream)
	}
	if x.keep != nil {
		x.keep.take(ctx, &x.answer, x.call.Result().Class)
	}
	x.forget(ctx)
	resp.Request = marked(x.req, m)
	return resp, nil
}
