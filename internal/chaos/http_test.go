package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// httpOrder draws an order and the request with which a client places it. own says
// that it has an idempotency key of its own.
func (c *client) httpOrder() (o order, method, path string, own bool) {
	method = pick(c.draw, http.MethodGet, http.MethodGet, http.MethodPut, http.MethodPost)
	path = pick(c.draw, "", "", "Books/")
	switch {
	case method == http.MethodPost:
		o = c.order(once)
		own = c.draw.IntN(4) == 0
	case method == http.MethodGet && c.draw.IntN(3) == 0:
		var n int
		o, n = c.keptOrder()
		path = fmt.Sprint("kept/", n)
	default:
		o = c.order("")
	}
	o.code = pick(c.draw, 200, 200, 200, 200, 200, 200, 200, 503, 500, 429, 404)
	return o, method, path, own
}

func (c *client) httpCall() {
	o, method, path, own := c.httpOrder()
	ctx, cancel := c.patience()
	defer cancel()
	a := asked{order: o, ctx: ctx, kind: "HTTP " + method, read: method == http.MethodGet, tells: true}
	var body io.Reader
	if !a.read {
		if body = strings.NewReader(o.whole()); c.draw.IntN(2) == 0 {
			body = io.MultiReader(body) // without GetBody, and of unknown length
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("X-Order", o.String())
	if own {
		req.Header.Set("Idempotency-Key", o.ownKey())
		req.Header.Set("X-Own-Key", "1")
	}
	resp, err := pick(c.draw, c.webs...).Do(req)
	if err != nil {
		if _, ok := errors.AsType[*url.Error](err); !ok {
			c.fault(a, "no *url.Error: %v", err)
		}
		c.ledger.outcome(a.kind, c.judge(a, err))
		return
	}
	defer resp.Body.Close()
	answer, want := c.judgeResponse(a, resp), o.whole()
	switch {
	case answer == computedText:
		want = computedText
	case answer != "stale" && o.code != http.StatusOK:
		want = "as ordered"
	}
	switch c.draw.IntN(10) {
	case 0:
		c.ledger.outcome(a.kind, "unread")
		return
	case 1:
		cancel()
		_, _ = io.Copy(io.Discard, resp.Body)
		c.ledger.outcome(a.kind, "left")
		return
	}
	got, err := io.ReadAll(resp.Body)
	switch {
	case !bytes.HasPrefix([]byte(want), got):
		c.fault(a, "%d bytes of another answer", len(got))
	case err != nil:
		a.tells = false
		c.ledger.outcome(a.kind, "body: "+c.judge(a, err))
	case len(got) != len(want):
		c.fault(a, "%d of %d bytes, and no error", len(got), len(want))
	case answer == "":
		c.ledger.outcome(a.kind, strconv.Itoa(o.code))
	case answer == computedText || answer == "stale":
		c.ledger.outcome(a.kind, answer)
	default:
		c.ledger.outcome(a.kind, strconv.Itoa(o.code)+", "+answer)
	}
}
