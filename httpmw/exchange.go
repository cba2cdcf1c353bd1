package httpmw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
)

// exchange is one call under way: the attempts at one request.
type exchange struct {
	transport *Transport
	call      holdfast.Call
	req       *http.Request
	upload    upload
	first     holder    // the first attempt's, unless it races
	lane      lane      // the last attempt, unless it raced
	answer    *answer   // its, nil if it brought none
	keep      *keep     // nil if it has nothing to do with stale answers
	given     io.Closer // the body of a fallback's answer, until the caller has it
}

// begin begins the call. If it does not come to that, by an error or by a hook that
// panics, the body is closed.
func (x *exchange) begin(m *holdfast.Method, info call.Info) (ctx context.Context, err error) {
	begun := false
	defer func() {
		if !begun {
			closeBody(x.req)
		}
	}()
	ctx, err = x.call.Begin(x.req.Context(), m, info, holdfast.Terms{
		Keyed: hasKey(x.req.Header), Upstreams: x.transport.failover.upstreamList(),
	})
	begun = err == nil
	return ctx, err
}

// attempt makes one attempt. What it leaves open, the answer holds.
func (x *exchange) attempt(ctx context.Context) (res call.Result) {
	h := &x.first
	if h.ctx != nil { // it was used
		h = new(holder)
	}
	h.ctx = ctx
	held, refusal := x.call.OpenHeld(ctx, &h.attempt)
	if held == nil {
		return refusal
	}
	x.lane = lane{exchange: x, holder: h, n: x.call.Attempt()}
	res = x.lane.Run(held)
	if x.answer = x.lane.answer; x.answer != nil && x.transport.failover != nil {
		x.answer.upstream = x.call.Upstream()
	}
	return res
}

// race makes an attempt and hedges it.
func (x *exchange) race(ctx context.Context) call.Result {
	first := x.call.Attempt()
	return x.call.Race(ctx, true, func(n int) holdfast.Lane {
		return &lane{exchange: x, holder: &holder{ctx: ctx}, n: n, hedge: n > first}
	})
}

// outgoing returns the request of one attempt: a shallow copy, which the base
// may not change either, with a body and a context of its own, and where the kit
// has something to add to it, a header of its own.
func (x *exchange) outgoing(ctx context.Context, n int, body io.ReadCloser) (*http.Request, error) {
	o, key, watched, f := &x.transport.options, x.call.Key(), x.call.Watched(), x.transport.failover
	numbered := o.numberIn != "" && n > 1
	head := x.req.Header
	if head == nil {
		head = http.Header{}
	} else if key != "" || numbered || watched || o.prepare != nil || f != nil {
		head = head.Clone()
	}
	if f != nil {
		f.strip(head, x.call.Upstream())
	}
	if key != "" {
		head.Set("Idempotency-Key", key)
	}
	if numbered {
		head.Set(o.numberIn, strconv.Itoa(n-1))
	}
	if watched {
		ctx = holdfast.Sending(ctx, n, header(head))
	}
	var out *http.Request
	if o.prepare != nil || f != nil {
		out = x.req.Clone(ctx) // the hook may change what it finds
	} else {
		out = x.req.WithContext(ctx)
	}
	out.Header = head
	if body != nil {
		out.Body = body
		out.GetBody = x.upload.getBody(body)
	}
	if f != nil {
		if err := f.aim(out, x.call.Upstream(), x.call.Instance()); err != nil {
			return nil, unmade(out, err)
		}
	}
	if o.prepare != nil {
		if err := o.prepare(out, n); err != nil {
			return nil, unmade(out, err)
		}
	}
	return out, nil
}

// unmade closes the body of a request that is not sent.
func unmade(out *http.Request, err error) error {
	if out.Body != nil {
		out.Body.Close()
	}
	return err
}

// header is an attempt's header as hooks see it.
type header http.Header

func (h header) Get(key string) string { return http.Header(h).Get(key) }

func (h header) Set(key, value string) { http.Header(h).Set(key, value) }

func (h header) Keys() []string { return slices.Collect(maps.Keys(h)) }

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
func (x *exchange) classify(h *holder, resp *http.Response, err error, scheme string, trace *sendTrace) call.Result {
	var res call.Result
	switch {
	case err != nil && x.upload.failed():
		res = call.Result{Class: call.Permanent, Err: err}
	case err != nil && isCanceled(x.req):
		res = call.Result{Class: call.Canceled, Err: err}
	case err != nil:
		res = ofError(err, scheme, trace.sent())
		resp = nil // of no use: a limit has passed since
	default:
		res = ofResponse(resp)
		if x.transport.options.asksOn[res.Code] {
			res.RetryAfter = retryAfter(resp.Header)
		}
		if final := x.transport.options.finalBy; final != "" && len(resp.Header[final]) > 0 {
			res.NoRetry = true
		}
	}
	res = h.attempt.Judge(h.ctx, res)
	if amend := x.transport.options.classifier; amend != nil {
		res = amend(resp, err, res)
	}
	res = x.call.Classify(h.ctx, res)
	if !x.upload.repeatable() {
		x.tellTooLong(res)
		res.NoRetry = true
	}
	return res
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

// prepare makes ready for a repeat while the back-off runs, or for another upstream: the failed answer
// gives back what it holds, and the body is rewound. Neither may take the call
// beyond its time.
func (x *exchange) prepare(ctx context.Context) error {
	switch {
	case x.answer == nil:
	case x.call.Moving(): // to another upstream, where nothing is waited for
		x.answer.holder.attempt.ReleasePermit()
	default:
		x.answer.park(ctx, min(drainTime, x.call.TimeLeft()))
	}
	return x.upload.rewind(ctx, min(drainTime, x.call.TimeLeft()))
}

// close ends what is left of the call. Where it was unwound by a panic or a Goexit
// nobody gets the answer.
func (x *exchange) close(unwound bool) {
	if unwound {
		defer x.call.Unwound()
		defer x.discard()
		if x.given != nil {
			defer x.given.Close()
		}
	}
	x.upload.finish(unwound)
}

// discard drops the answer of an attempt that was followed by another, or whose
// call ended otherwise.
func (x *exchange) discard() {
	if x.answer != nil {
		x.answer.drop()
		x.answer = nil
	}
}

// finish ends the call: with the fallback's answer, the last response or the
// error.
func (x *exchange) finish(ctx context.Context) (*http.Response, error) {
	answer, err := x.call.Fallback(ctx)
	if answer != nil {
		if resp, ok := answer.(*http.Response); ok && resp != nil {
			x.discard()
			if resp.Body != nil {
				x.given = resp.Body
			}
			x.call.Served(ctx)
			return x.substitute(resp), nil
		}
		err = x.call.FailFallback(ctx, fmt.Errorf("httpmw: the fallback of %q returned a %T, not a *http.Response", x.call.Info().Method, answer))
	}
	if err != nil || x.answer == nil {
		x.discard()
		return nil, err
	}
	resp, m := x.answer.resp, mark{stopped: x.call.Stopped()}
	if f := x.transport.failover; f != nil {
		m.upstream = f.received(resp, x.answer.upstream)
	}
	if x.keep != nil {
		x.keep.take(ctx, x.answer, x.call.Result().Class)
	}
	x.forget(ctx)
	resp.Request = marked(x.req, m)
	return resp, nil
}

// substitute makes a fallback's response one to this request, and marks it. What
// the fallback holds itself stays as it is.
func (x *exchange) substitute(resp *http.Response) *http.Response {
	own := *resp
	own.Header = resp.Header.Clone()
	if own.Header == nil {
		own.Header = http.Header{}
	}
	if own.Body == nil {
		own.Body = http.NoBody
	}
	if !fallback.MarkedBy(own.Header[fallback.CacheStatusField]) {
		own.Header.Add(fallback.CacheStatusField, fallback.ComputedStatus(x.call.Result().Class))
	}
	own.Request = x.req
	return &own
}
