package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
)

// doCall makes a call with Do: its function places an order without a kit.
func (c *client) doCall() {
	m := pick(c.draw, c.workers...)
	method, prefix, safety := http.MethodGet, "", call.ReadOnly
	switch c.draw.IntN(4) {
	case 0:
		method, safety = http.MethodPut, call.Idempotent
	case 1:
		method, prefix, safety = http.MethodPost, once+"do-", call.Unsafe
	}
	o := c.order(prefix)
	o.code = pick(c.draw, 200, 200, 200, 200, 200, 200, 503)
	ctx, cancel := c.patience()
	defer cancel()
	a := asked{order: o, ctx: ctx, kind: "Do " + safety.String(), read: safety == call.ReadOnly, tells: true}
	info := call.Info{Target: "store", Method: pick(c.draw, "any", "own", "Books"), Safety: safety}
	got, err := holdfast.Do(ctx, m.kit, info, func(ctx context.Context) (string, error) {
		text, err := c.place(ctx, method, o)
		return text, fromWire(err)
	})
	switch {
	case err != nil:
		c.ledger.outcome(a.kind, c.judge(a, err))
	case got == computedText && a.read:
		c.ledger.outcome(a.kind, computedText)
	case o.code != http.StatusOK || got != o.whole():
		c.fault(a, "%d bytes of another answer", len(got))
	default:
		c.ledger.outcome(a.kind, "200")
	}
}

// place places an order; it may be called by several goroutines.
func (c *client) place(ctx context.Context, method string, o order) (string, error) {
	var body io.Reader
	if method != http.MethodGet {
		body = strings.NewReader(o.whole())
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url, body)
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Order", o.String())
	resp, err := c.plain.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("status %d", resp.StatusCode)
	}
	return string(got), nil
}
