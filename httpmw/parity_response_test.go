package httpmw_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// H1: responses are those of the bare transport.
func TestH1_ResponsesAreThoseOfTheBareTransport(t *testing.T) {
	playEach(t, map[string]situation{
		"trailers": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				_, _ = io.WriteString(w, "body")
				_ = http.NewResponseController(w).Flush()
				w.Header().Set("X-Sum", "4")
				w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				resp, err := c.Do(newRequest(t, http.MethodGet, url, nil))
				if err == nil {
					n.saw("announced %v", resp.Trailer)
				}
				n.answer(resp, err)
				n.saw("came %v", resp.Trailer)
			},
			real: true,
		},
		"gzip, unasked": {
			serve: zipped,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				resp, err := c.Do(newRequest(t, http.MethodGet, url, nil))
				n.answer(resp, err)
				n.saw("%t %d %q", resp.Uncompressed, resp.ContentLength, resp.Header.Get("Content-Encoding"))
			},
			want: []string{`200 OK "clear text" <nil>`, `true -1 ""`, "1 dialled, 0 left open"},
		},
		"gzip, asked for": {
			serve: zipped,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				req := newRequest(t, http.MethodGet, url, nil)
				req.Header.Set("Accept-Encoding", "gzip")
				resp, err := c.Do(req)
				n.answer(resp, err)
				n.saw("%t %q", resp.Uncompressed, resp.Header.Get("Content-Encoding"))
			},
		},
		"gzip that breaks": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = io.WriteString(w, "no gzip at all")
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				n.answer(c.Do(newRequest(t, http.MethodGet, url, nil)))
			},
		},
		"HEAD": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				n.served("%s", r.Method)
				w.Header().Set("Content-Length", "1234")
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				resp, err := c.Do(newRequest(t, http.MethodHead, url, nil))
				n.saw("%d %t", resp.ContentLength, resp.Body == http.NoBody)
				n.answer(resp, err)
			},
		},
		"no body": {
			serve: func(_ *notes, w http.ResponseWriter, r *http.Request) {
				var code int
				_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
				w.WriteHeader(code)
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for _, code := range []int{200, 204, 205, 304, 404, 500 + 1} {
					resp, err := c.Do(newRequest(t, http.MethodGet, fmt.Sprint(url, "/", code), nil))
					n.saw("%d %t %v", resp.ContentLength, resp.Body == http.NoBody, resp.TransferEncoding)
					n.answer(resp, err)
				}
			},
			real: true,
		},
		"hints": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
				for i := range 3 {
					w.Header().Set("Link", fmt.Sprintf("</style%d.css>", i))
					w.WriteHeader(http.StatusEarlyHints)
				}
				w.WriteHeader(http.StatusProcessing)
				_, _ = io.WriteString(w, "page")
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				req := newRequest(t, http.MethodGet, url, nil)
				n.answer(c.Do(req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
					Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
						n.saw("%d %s", code, h.Get("Link"))
						return nil
					},
				}))))
			},
			want: []string{"103 </style0.css>", "103 </style1.css>", "103 </style2.css>", "102 </style2.css>", `200 OK "page" <nil>`, "1 dialled, 0 left open"},
		},
		"what else a response has": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				n.served("%s %s %s", r.Host, r.RequestURI, r.Proto)
				for _, name := range slices.Sorted(maps.Keys(r.Header)) {
					n.served("%s: %q", name, r.Header[name])
				}
				w.Header()["Date"] = nil
				w.Header().Add("X-A", "1")
				w.Header().Add("X-A", "2")
				w.Header().Set("Connection", "close")
				_, _ = io.WriteString(w, "x")
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				req := newRequest(t, http.MethodPost, url+"/p%2Fq?x=%20&y=1", strings.NewReader("x"))
				req.Host = "other.test"
				req.Header["lower-case"] = []string{"v"}
				req.Header.Set("User-Agent", "me/1")
				resp, err := c.Do(req)
				n.saw("%t %d %v %t %t", resp.Close, resp.ContentLength, resp.Header, resp.TLS != nil, resp.Request == req)
				n.answer(resp, err)
			},
		},
		"events as they come": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
					_ = http.NewResponseController(w).Flush()
					time.Sleep(time.Hour)
				}
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				began := time.Now()
				resp, err := c.Do(newRequest(t, http.MethodGet, url, nil))
				n.saw("%v", err)
				defer resp.Body.Close()
				for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
					n.saw("%v %s", time.Since(began), lines.Text())
				}
			},
			want: []string{"<nil>", "0s data: 0", "0s ", "1h0m0s data: 1", "1h0m0s ", "2h0m0s data: 2", "2h0m0s ", "1 dialled, 0 left open"},
		},
		"the caller's trace": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				var wrote, first atomic.Int32
				for range 2 {
					n.answer(c.Do(newRequest(t, http.MethodGet, url, nil).WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
						GetConn:              func(at string) { n.saw("wants %s", at) },
						GotConn:              func(i httptrace.GotConnInfo) { n.saw("got, reused %t", i.Reused) },
						WroteRequest:         func(httptrace.WroteRequestInfo) { wrote.Add(1) },
						GotFirstResponseByte: func() { first.Add(1) },
					}))))
				}
				synctest.Wait()
				n.saw("wrote %d, first byte of %d", wrote.Load(), first.Load())
			},
		},
		"bodies closed early": {
			serve: func(_ *notes, w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("x", len(r.URL.Path)*1000))
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for _, path := range []string{"/", "/x", strings.Repeat("/x", 100)} {
					for _, read := range []int{0, 1, 900} {
						resp, err := c.Do(newRequest(t, http.MethodGet, url+path, nil))
						n.saw("%v", err)
						_, err = io.ReadFull(resp.Body, make([]byte, read))
						n.saw("%v %v", err, resp.Body.Close())
						synctest.Wait()
					}
				}
			},
		},
		"connections in a row": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for range 20 {
					resp, err := c.Do(newRequest(t, http.MethodGet, url, nil))
					if err != nil {
						n.saw("%v", err)
						continue
					}
					k, err := io.Copy(io.Discard, resp.Body)
					n.saw("%d %v %v", k, err, resp.Body.Close())
				}
			},
		},
	})
}

func zipped(_ *notes, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = io.WriteString(z, "clear text")
	_ = z.Close()
}
