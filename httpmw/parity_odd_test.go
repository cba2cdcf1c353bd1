package httpmw_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// H1: what servers and clients seldom do ends as over the bare transport.
func TestH1_OddCallsAreThoseOfTheBareTransport(t *testing.T) {
	http1 := []memnet.Proto{memnet.HTTP1}
	playEach(t, map[string]situation{
		"garbage": {
			protos: http1,
			serve:  raw("GARBAGE\r\n\r\n"),
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				n.answer(c.Do(newRequest(t, http.MethodPost, url, nil)))
			},
		},
		"odd answers": {
			protos: http1,
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				answer, _ := io.ReadAll(r.Body)
				raw(string(answer))(n, w, r)
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for _, odd := range []string{
					"HTTP/1.0 200 OK\r\n\r\nto the end",
					"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
					"HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\nok",
					"HTTP/1.1 600 High\r\nContent-Length: 2\r\n\r\nok",
					"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok",
					"HTTP/1.1 0 Nought\r\nContent-Length: 2\r\n\r\nok",
					"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
					"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
					"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok",
					"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok",
					"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
					"HTTP/1.1 200 OK\r\nTransfer-Encoding: odd\r\n\r\nok",
					"HTTP/1.1 101 Switching Protocols\r\n\r\nodd",
					"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
					"HTTP/1.1 302 Found\r\nContent-Length: 2\r\n\r\nok",
					"HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "\r\n\r\n", "H", "",
				} {
					n.answer(c.Do(newRequest(t, http.MethodPost, url, strings.NewReader(odd))))
				}
			},
		},
		"odd requests": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				n.served("%s %s %q %t", r.Method, r.RequestURI, r.Header["Authorization"], r.Close)
				_, _ = io.WriteString(w, "x")
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for _, method := range []string{"PURGE", "purge", http.MethodTrace, http.MethodOptions, http.MethodPatch, "", http.MethodDelete} {
					req := newRequest(t, http.MethodGet, strings.Replace(url, "://", "://user:pw@", 1)+"//a/../b?x#y", nil)
					req.Method, req.Close = method, method == "PURGE"
					resp, err := c.Do(req)
					n.answer(resp, err)
				}
				for _, opaque := range []string{"*", "//other.test/a"} {
					req := newRequest(t, http.MethodOptions, url, nil)
					req.URL.Opaque = opaque
					n.answer(c.Do(req))
				}
			},
		},
		"a proxy": {
			protos: http1,
			tune: func(_ *http.Server, tr *http.Transport) {
				tr.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://user:pw@proxy.test") }
			},
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				n.served("%s %s %s %q", r.Method, r.RequestURI, r.Host, r.Header["Proxy-Authorization"])
				_, _ = io.WriteString(w, "x")
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				n.answer(c.Do(newRequest(t, http.MethodGet, "http://far.test/a?b", nil)))
			},
		},
		"a tunnel": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				n.served("%s %s", r.Method, r.Host)
				rc := http.NewResponseController(w)
				_ = rc.EnableFullDuplex()
				w.WriteHeader(200)
				_ = rc.Flush()
				_, _ = io.Copy(w, r.Body)
			},
			protos: []memnet.Proto{memnet.H2C, memnet.H2},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				r, w := io.Pipe()
				req := newRequest(t, http.MethodConnect, url, r)
				req.Host = "far.test:22"
				resp, err := c.Do(req)
				n.saw("%v", err)
				go func() {
					_, _ = io.WriteString(w, "through the tunnel")
					_ = w.Close()
				}()
				n.answer(resp, err)
			},
		},
		"a header that is too large": {
			tune: func(_ *http.Server, tr *http.Transport) { tr.MaxResponseHeaderBytes = 1000 },
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Large", strings.Repeat("x", 10_000))
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				n.answer(c.Do(newRequest(t, http.MethodPost, url, nil)))
			},
		},
		"idle connections that the server closes": {
			tune: func(s *http.Server, _ *http.Transport) { s.IdleTimeout = time.Second },
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				n.served("%s %s", r.Method, body)
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPost, http.MethodPut} {
					n.answer(c.Do(newRequest(t, method, url, strings.NewReader("x"))))
					time.Sleep(time.Minute)
				}
			},
		},
		"a connection that is closed under a GET": {
			protos: http1,
			tune:   countPerConn,
			serve:  closesEverySecond,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for range 3 {
					n.answer(c.Do(newRequest(t, http.MethodGet, url, nil)))
				}
			},
		},
		"a connection that is closed under a POST": {
			protos: http1,
			tune:   countPerConn,
			serve:  closesEverySecond,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for range 3 {
					n.answer(c.Do(newRequest(t, http.MethodPost, url, strings.NewReader("order"))))
				}
			},
		},
	})
}

// raw answers with bytes of its own and closes the connection.
func raw(answer string) func(*notes, http.ResponseWriter, *http.Request) {
	return func(_ *notes, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, answer)
		_ = conn.Close()
	}
}

// closesEverySecond answers the first request on each connection, and closes the
// connection at the next.
func closesEverySecond(n *notes, w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	seen, _ := r.Context().Value(perConn{}).(*int)
	n.served("%s, %d before it on this connection", r.Method, *seen)
	if *seen++; *seen > 1 {
		raw("")(n, w, r)
		return
	}
	_, _ = io.WriteString(w, "x")
}

type perConn struct{}

func countPerConn(s *http.Server, _ *http.Transport) {
	s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, perConn{}, new(int))
	}
}
