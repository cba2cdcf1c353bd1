package httpmw

import (
	"context"
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
)

// lane is one attempt at the request, with all that it does not share with those
// that may run beside it.
type lane struct {
	exchange *exchange
	holder   *holder
	n        int  // its number in the call
	hedge    bool // sent while another one runs

	body   io.ReadCloser // nil if there is none to send
	answer *answer       // nil if it brought none
	good   bool          // and not one that says the attempt failed
}

// Held returns what the attempt holds until the end of its answer.
func (l *lane) Held() *holdfast.Attempt { return &l.holder.attempt }

// Run sends the request of an attempt that was admitted.
func (l *lane) Run(held context.Context) (res call.Result) {
	x, h := l.exchange, l.holder
	h.method, h.onPanic = x.call.Info().Method, x.transport.options.onPanic
	var resp *http.Response
	settled := false
	defer func() {
		if !settled { // a panic or Goexit in the base, a hook or a classifier
			defer h.end(call.Result{Class: call.ServerFault})
			if resp != nil {
				resp.Body.Close()
			}
		}
	}()
	if !l.hedge {
		x.discard() // the failed answer before, now that another attempt is made
	}

	var trace *sendTrace
	if !x.call.MayRepeat() && x.call.MayRetry() {
		trace = new(sendTrace)
		held = trace.on(held)
	}
	trial := x.call.Try(l.n)
	out, err := l.request(held)
	if err != nil {
		res = x.call.Classify(h.ctx, call.Result{Class: call.Permanent, Err: err, NotSent: true})
		settled = true
		h.end(res)
		return res
	}
	var asked fallback.Stamp
	if x.keep != nil {
		asked = fallback.StampNow()
	}
	resp, err = sound(x.transport.base.RoundTrip(out))
	if err == nil {
		err = h.opened(resp, x.transport.options.first)
	}
	res = x.classify(h, resp, err, out.URL.Scheme, trace)
	trial.Ended(h.ctx, res)
	settled = true
	if err != nil {
		h.end(res)
		return res
	}
	h.attempt.Answered()
	if !isSwitch(resp) && !bodyless(resp) {
		x.call.WatchIdle(&h.attempt, resp.ContentLength >= 0)
	}
	l.answer, l.good = newAnswer(h, resp, res), res.Class == call.OK
	if x.keep != nil {
		l.answer.sent, l.answer.asked = out.Header, asked
	}
	return res
}

// request returns the request to send, with a body of the attempt's own.
func (l *lane) request(held context.Context) (_ *http.Request, err error) {
	u := &l.exchange.upload
	switch {
	case u.empty():
	case l.hedge:
		if l.body, err = u.reopen(); err != nil {
			return nil, err
		}
	default:
		l.body = u.next()
	}
	return l.exchange.outgoing(held, l.n, l.body)
}

// End gives the call the answer of the attempt that has won, and lets go of what
// another one has brought or still reads.
func (l *lane) End(won bool) {
	if won {
		l.exchange.answer = l.answer
		return
	}
	if body, watched := l.body.(*attemptBody); watched {
		defer body.abandon(l.holder.ctx, drainTime)
	}
	switch {
	case l.answer == nil:
	case l.good:
		l.answer.forsake()
	default:
		l.answer.drop()
	}
}
