package httpmw_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// H1, T2: waits and reads that are cut short end as over the bare transport.
func TestH1_BrokenOffCallsAreThoseOfTheBareTransport(t *testing.T) {
	half := func(_ *notes, w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	playEach(t, map[string]situation{
		"cancel while reading": {
			serve: half,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				n.answer(c.Do(newRequest(t, http.MethodGet, url, nil).WithContext(ctx)))
			},
			want: []string{`200 OK "half" context canceled`, "1 dialled, 0 left open"},
		},
		"cancel with a cause while reading": {
			serve: half,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(io.ErrNoProgress) })
				n.answer(c.Do(newRequest(t, http.MethodGet, url, nil).WithContext(ctx)))
			},
		},
		"a deadline while reading": {
			serve: half,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				n.answer(c.Do(newRequest(t, http.MethodGet, url, nil).WithContext(ctx)))
			},
			want: []string{`200 OK "half" context deadline exceeded`, "1 dialled, 0 left open"},
		},
		"the client's timeout while reading": {
			serve: half,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				c.Timeout = time.Second
				resp, err := c.Do(newRequest(t, http.MethodGet, url, nil))
				n.saw("%v", err)
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				n.timeout(err)
				n.saw("%s", body)
			},
			want: []string{"<nil>", "timeout true true", "half", "1 dialled, 0 left open"},
		},
		"the client's timeout while waiting": {
			serve: func(_ *notes, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				c.Timeout = time.Second
				_, err := c.Do(newRequest(t, http.MethodGet, url, nil))
				n.timeout(err)
			},
			want: []string{"timeout true true", "1 dialled, 0 left open"},
		},
		"cancel while waiting": {
			serve: func(_ *notes, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				n.answer(c.Do(newRequest(t, http.MethodGet, url, nil).WithContext(ctx)))
			},
		},
		"reads beyond the end": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "body") },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				buf := make([]byte, 10)
				resp, err := c.Do(newRequest(t, http.MethodGet, url, nil))
				n.saw("%v", err)
				_, _ = io.ReadFull(resp.Body, buf[:4])
				for range 3 {
					k, err := resp.Body.Read(buf)
					n.saw("%d %v", k, err)
				}
				n.saw("%v %v", resp.Body.Close(), resp.Body.Close())
				k, err := resp.Body.Read(buf)
				n.saw("%d %v", k, err)
			},
			real: true,
		},
		"a read of a closed body": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "body") },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				resp, err := c.Do(newRequest(t, http.MethodGet, url, nil))
				n.saw("%v %v", err, resp.Body.Close())
				_, err = resp.Body.Read(make([]byte, 10))
				n.saw("%v", err)
			},
		},
		"a body that breaks": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "part")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				n.answer(c.Do(newRequest(t, http.MethodGet, url, nil)))
			},
			real: true,
		},
		"no answer": {
			serve: func(_ *notes, _ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				n.answer(c.Do(newRequest(t, http.MethodPost, url, strings.NewReader("x"))))
			},
		},
	})
}

// timeout notes whether err says so. Its text depends on which of two timers of
// http.Client's, both due at once, is first.
func (n *notes) timeout(err error) {
	var timeout interface{ Timeout() bool }
	n.saw("timeout %t %t", errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded))
}
