package httpmw

import (
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/answers"
)

// given takes a fallback's answer, and holds its body until the caller has it. A nil
// given has none. It is by itself on the heap: what the call keeps of it must not refer
// to the exchange.
type given struct {
	method string
	body   io.Closer
}

// takeGiven lets a call that may have a fallback take its answer.
func takeGiven(c *holdfast.Call) *given {
	g := &given{method: c.Info().Method}
	c.TakesBy(g.take)
	return g
}

func (g *given) take(answer any, failure error) error {
	resp, ok := answer.(*http.Response)
	if resp != nil && resp.Body != nil {
		g.body = resp.Body
	}
	switch {
	case failure != nil:
	case !ok:
		failure = fmt.Errorf("httpmw: the fallback of %q returned a %T, not a *http.Response", g.method, answer)
	case resp == nil:
		failure = fmt.Errorf("httpmw: the fallback of %q returned a nil *http.Response", g.method)
	}
	return failure
}

// drop closes the body of an answer that nobody gets.
func (g *given) drop() {
	if g == nil || g.body == nil {
		return
	}
	body := g.body
	g.body = nil
	body.Close()
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
		own.Header.Add(fallback.CacheStatusField, answers.ComputedStatus(x.call.Result().Class))
	}
	own.Request = x.req
	return &own
}
