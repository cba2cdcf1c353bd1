package httpmw_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// A situation is a client and a server at work, played twice: over the bare
// transport, and over the same with a kit in between. Whatever the
// client and the server can see must be the same. What they see they note.
type situation struct {
	protos []memnet.Proto // nil: each
	tune   func(*http.Server, *http.Transport)
	serve  func(n *notes, w http.ResponseWriter, r *http.Request)
	play   func(t *testing.T, n *notes, c *http.Client, url string)

	// want is what the client must have noted over the bare transport, so that
	// the situation is known to be the one that is meant; nil: whatever it was.
	want []string

	real bool // also over real sockets, where no clock and no server settings count
}

// notes is what both sides saw.
type notes struct {
	mu             sync.Mutex
	client, server []string
}

func (n *notes) saw(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.client = append(n.client, fmt.Sprintf(format, args...))
}

func (n *notes) served(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = append(n.server, fmt.Sprintf(format, args...))
}

func (n *notes) answer(resp *http.Response, err error) {
	if err != nil {
		n.saw("error %v", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	n.saw("%s %s %q %v", resp.Proto, resp.Status, body, err)
}

func playEach(t *testing.T, all map[string]situation) {
	t.Helper()
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			protos := s.protos
			if protos == nil {
				protos = memnet.Protos()
			}
			for _, proto := range protos {
				t.Run(string(proto), func(t *testing.T) {
					s.same(t, func(t *testing.T, n *notes, over func(http.RoundTripper) http.RoundTripper) {
						synctest.Test(t, func(t *testing.T) { s.inMemory(t, proto, n, over) })
					})
				})
			}
			if s.real {
				for _, h2 := range []bool{false, true} {
					t.Run(fmt.Sprintf("real sockets, HTTP/2 %t", h2), func(t *testing.T) {
						s.same(t, func(t *testing.T, n *notes, over func(http.RoundTripper) http.RoundTripper) {
							s.onSockets(t, h2, n, over)
						})
					})
				}
			}
		})
	}
}

// same plays the situation twice and compares.
func (s situation) same(t *testing.T, play func(*testing.T, *notes, func(http.RoundTripper) http.RoundTripper)) {
	var bare, kit notes
	t.Run("bare", func(t *testing.T) {
		play(t, &bare, func(base http.RoundTripper) http.RoundTripper { return base })
	})
	if s.want != nil {
		require.Equal(t, s.want, withoutProto(bare.client))
	}
	require.NotEmpty(t, bare.client)
	t.Run("kit", func(t *testing.T) {
		k, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
			Breaker: &breaker.Config{Consecutive: 1000}, // some situations fail again and again
		}})
		require.NoError(t, err)
		play(t, &kit, func(base http.RoundTripper) http.RoundTripper { return httpmw.NewTransport(base, k) })
	})
	require.Equal(t, bare.client, kit.client, "what the client sees")
	require.Equal(t, bare.server, kit.server, "what the server sees")
}

func withoutProto(lines []string) []string {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(lines[i], "HTTP/1.1 "), "HTTP/2.0 ")
	}
	return lines
}

func (s situation) inMemory(t *testing.T, proto memnet.Proto, n *notes, over func(http.RoundTripper) http.RoundTripper) {
	tune := s.tune
	if tune == nil {
		tune = func(*http.Server, *http.Transport) {}
	}
	server := memnet.Start(t, proto, s.handler(n), tune, func(s *http.Server, _ *http.Transport) {
		s.ErrorLog = log.New(io.Discard, "", 0)
	})
	s.play(t, n, &http.Client{Transport: over(server.Transport)}, server.URL)
	synctest.Wait() // or Close would meet connections that are just coming up
	server.Close()
	synctest.Wait()
	n.saw("%d dialled, %d left open", server.Wire.Dials(), server.Wire.Open())
}

func (s situation) onSockets(t *testing.T, h2 bool, n *notes, over func(http.RoundTripper) http.RoundTripper) {
	server := httptest.NewUnstartedServer(s.handler(n))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	base := &http.Transport{ExpectContinueTimeout: time.Second}
	if server.EnableHTTP2 = h2; h2 {
		server.StartTLS()
		base.ForceAttemptHTTP2 = true
		base.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	} else {
		server.Start()
	}
	s.play(t, n, &http.Client{Transport: over(base)}, server.URL)
	base.CloseIdleConnections()
	server.Close()
}

func (s situation) handler(n *notes) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(n, w, r) })
}

// newRequest is http.NewRequest in the test's context.
func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	return req
}
