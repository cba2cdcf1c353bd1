package httpmw_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// reverseProxy is the standard library's, with nothing changed but the transport.
func reverseProxy(t *testing.T, back string, transport http.RoundTripper) *httputil.ReverseProxy {
	t.Helper()
	u, err := url.Parse(back)
	require.NoError(t, err)
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u); r.SetXForwarded() },
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = fmt.Fprint(w, err)
		},
	}
}

// proxied is a back end behind a reverse proxy with a kit in it.
type proxied struct {
	back, front *memnet.Server
	client      *http.Client
}

func startProxied(t *testing.T, front, back memnet.Proto, p holdfast.Policy, h http.Handler) *proxied {
	t.Helper()
	quiet := func(s *http.Server, _ *http.Transport) { s.ErrorLog = log.New(io.Discard, "", 0) }
	k := newKit(t, p)
	b := memnet.Start(t, back, h, quiet)
	f := memnet.Start(t, front, reverseProxy(t, b.URL, httpmw.NewTransport(b.Transport, k)), quiet)
	return &proxied{b, f, f.Client()}
}

func (p *proxied) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	resp, err := p.client.Do(newRequest(t, http.MethodGet, p.front.URL+path, nil))
	require.NoError(t, err)
	return resp, readAll(t, resp.Body)
}

// overPairs runs a test with each protocol in front and behind.
func overPairs(t *testing.T, test func(t *testing.T, front, back memnet.Proto)) {
	for _, pair := range [][2]memnet.Proto{{memnet.HTTP1, memnet.HTTP1}, {memnet.H2, memnet.HTTP1}, {memnet.HTTP1, memnet.H2C}, {memnet.H2, memnet.H2}} {
		t.Run(string(pair[0]+" to "+pair[1]), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, pair[0], pair[1]) })
		})
	}
}

// A reverse proxy passes everything on, and hides from its clients that an
// attempt failed.
func TestAReverseProxyPassesCallsOn(t *testing.T) {
	overPairs(t, func(t *testing.T, front, back memnet.Proto) {
		s := answers(
			status(503, "down"),
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum")
				w.Header().Set("X-For", r.Header.Get("X-Forwarded-For"))
				_, _ = io.WriteString(w, "page")
				_ = http.NewResponseController(w).Flush()
				w.Header().Set("X-Sum", "4")
			},
			status(503, "down"),
		)
		p := startProxied(t, front, back, quick(), s)
		resp, body := p.get(t, "/a?b=c")
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, "page", body)
		require.Equal(t, "4", resp.Trailer.Get("X-Sum"))
		require.NotEmpty(t, resp.Header.Get("X-For"))
		require.Len(t, s.hits(), 2)

		// An upload that the proxy does not keep goes through once, and whole.
		big := strings.Repeat("0123456789", 100_000)
		resp, err := p.client.Do(newRequest(t, http.MethodPost, p.front.URL, strings.NewReader(big)))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, "down", readAll(t, resp.Body))
		require.Len(t, s.hits(), 3)
		require.Equal(t, big, s.hits()[2].body)
	})
}

// The proxy's error handler sees the kit's errors.
func TestAReverseProxyAnswersForAnOpenCircuit(t *testing.T) {
	overPairs(t, func(t *testing.T, front, back memnet.Proto) {
		p := startProxied(t, front, back, quick(), answers(status(200, "")))
		p.back.Wire.Refuse(true)
		for range 2 {
			resp, body := p.get(t, "/")
			require.Equal(t, http.StatusBadGateway, resp.StatusCode)
			require.Contains(t, body, "refused")
		}
		resp, body := p.get(t, "/")
		require.Equal(t, http.StatusBadGateway, resp.StatusCode)
		require.Contains(t, body, "is open")
		require.Equal(t, 5, p.back.Wire.Dials())
	})
}

// Events are flushed through the proxy as they come, beyond every limit of the
// policy; a client that leaves ends the call and gives its permit back.
func TestAReverseProxyPassesEventsOn(t *testing.T) {
	overPairs(t, func(t *testing.T, front, back memnet.Proto) {
		left := make(chan struct{}, 1)
		policy := quick()
		policy.Bulkhead = &bulkhead.Config{Limit: 1}
		p := startProxied(t, front, back, policy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := 0; ; i++ {
				_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(time.Minute):
				case <-r.Context().Done():
					left <- struct{}{}
					return
				}
			}
		}))
		for range 2 { // the second time shows that the permit came back
			ctx, leave := context.WithCancel(t.Context())
			began := time.Now()
			resp, err := p.client.Do(newRequest(t, http.MethodGet, p.front.URL, nil).WithContext(ctx))
			require.NoError(t, err)
			events := bufio.NewScanner(resp.Body)
			for i := range 5 {
				require.True(t, events.Scan())
				require.Equal(t, fmt.Sprint("data: ", i), events.Text())
				require.Equal(t, time.Duration(i)*time.Minute, time.Since(began))
				require.True(t, events.Scan())
			}
			leave()
			require.NoError(t, resp.Body.Close())
			<-left
			synctest.Wait()
		}
	})
}

// echo takes the connection over and sends each line back.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "echo" {
		w.WriteHeader(http.StatusUpgradeRequired)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_ = rw.Flush()
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(rw, "echo %s", line)
		_ = rw.Flush()
	}
}

// upgrade makes an upgraded connection through the proxy and talks over it.
func upgrade(t *testing.T, client *http.Client, url string, pause time.Duration) {
	t.Helper()
	req := newRequest(t, http.MethodGet, url, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	both, ok := resp.Body.(io.ReadWriteCloser)
	require.True(t, ok)
	lines := bufio.NewReader(both)
	for i := range 5 {
		time.Sleep(pause)
		_, err = fmt.Fprintf(both, "line %d\n", i)
		require.NoError(t, err)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("echo line %d\n", i), line)
	}
	require.NoError(t, both.Close())
}

// An upgrade, as a websocket's, goes through the proxy and lasts.
func TestAReverseProxyPassesUpgradesOn(t *testing.T) {
	policy := quick()
	policy.Bulkhead = &bulkhead.Config{Limit: 1}
	synctest.Test(t, func(t *testing.T) {
		p := startProxied(t, memnet.HTTP1, memnet.HTTP1, policy, http.HandlerFunc(echo))
		for range 3 {
			upgrade(t, p.client, p.front.URL, time.Hour)
			synctest.Wait()
		}
		resp, _ := p.get(t, "/")
		require.Equal(t, http.StatusUpgradeRequired, resp.StatusCode)
	})
}

// The same over real sockets.
func TestAReverseProxyOverRealSockets(t *testing.T) {
	k := newKit(t, quick())
	s := answers(status(503, "down"), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
		}
	}, echo)
	back := httptest.NewServer(s)
	t.Cleanup(back.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	front := httptest.NewServer(reverseProxy(t, back.URL, httpmw.NewTransport(base, k)))
	t.Cleanup(front.Close)

	resp, err := front.Client().Get(front.URL)
	require.NoError(t, err)
	require.Equal(t, "data: 0\n\ndata: 1\n\ndata: 2\n\n", readAll(t, resp.Body))
	require.Len(t, s.hits(), 2)
	upgrade(t, front.Client(), front.URL, 0)
}
