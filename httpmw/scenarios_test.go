package httpmw_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// scenario is one situation that must come out the same over any wire.
type scenario struct {
	policy func(*holdfast.Policy)
	steps  []http.HandlerFunc
	play   func(t *testing.T, w *wire)
}

// wire is a client of a scripted server, over whatever it is.
type wire struct {
	url    string
	client *http.Client
	script *script
}

func (w *wire) do(t *testing.T, ctx context.Context, method string, header ...string) (*http.Response, string, error) {
	t.Helper()
	var body io.Reader
	if method != http.MethodGet {
		body = strings.NewReader("the request")
	}
	req, err := http.NewRequestWithContext(ctx, method, w.url+"/", body)
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func once(p *holdfast.Policy) { p.Retry = retry.Off() }

// scenarios is what gRPC's users are promised too, here for HTTP. No scenario
// measures time: over a real socket that would be real.
var scenarios = map[string]scenario{
	"a read is repeated until it is good": {nil, []http.HandlerFunc{status(503, ""), status(502, ""), status(200, "third")},
		func(t *testing.T, w *wire) {
			resp, text, err := w.do(t, t.Context(), http.MethodGet)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, "third", text)
			require.Len(t, w.script.hits(), 3)
		}},
	"D036: each attempt sends the whole body": {nil, []http.HandlerFunc{status(503, ""), status(200, "")},
		func(t *testing.T, w *wire) {
			_, _, err := w.do(t, t.Context(), http.MethodPut)
			require.NoError(t, err)
			hits := w.script.hits()
			require.Len(t, hits, 2)
			for _, h := range hits {
				require.Equal(t, "the request", h.body)
				require.EqualValues(t, len(h.body), h.length)
			}
		}},
	"D038: a write that may have arrived is not repeated": {nil, []http.HandlerFunc{status(503, "down")},
		func(t *testing.T, w *wire) {
			resp, text, err := w.do(t, t.Context(), http.MethodPost)
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, "down", text)
			require.Len(t, w.script.hits(), 1)
		}},
	"D037: unless it carries a key": {nil, []http.HandlerFunc{status(503, ""), status(201, "")},
		func(t *testing.T, w *wire) {
			resp, _, err := w.do(t, t.Context(), http.MethodPost, "Idempotency-Key", "k")
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			for _, h := range w.script.hits() {
				require.Equal(t, []string{"k"}, h.header["Idempotency-Key"])
			}
		}},
	"R7: the last response comes back whole": {nil, []http.HandlerFunc{status(503, "one"), status(503, "two"), status(503, "three")},
		func(t *testing.T, w *wire) {
			resp, text, err := w.do(t, t.Context(), http.MethodGet)
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, "three", text)
			require.Nil(t, httpmw.Stopped(resp))
		}},
	"D028: an open circuit is refused at once": {once, []http.HandlerFunc{status(500, "")},
		func(t *testing.T, w *wire) {
			for range 5 {
				_, _, err := w.do(t, t.Context(), http.MethodGet)
				require.NoError(t, err)
			}
			_, _, err := w.do(t, t.Context(), http.MethodGet)
			require.ErrorIs(t, err, breaker.ErrOpen)
			var outer *url.Error
			require.ErrorAs(t, err, &outer)
			require.False(t, outer.Timeout())
			require.Len(t, w.script.hits(), 5)
		}},
	"D020: a client's fault is a sign of life": {nil, []http.HandlerFunc{status(404, "")},
		func(t *testing.T, w *wire) {
			for range 20 {
				resp, _, err := w.do(t, t.Context(), http.MethodGet)
				require.NoError(t, err)
				require.Equal(t, 404, resp.StatusCode)
			}
			require.Len(t, w.script.hits(), 20)
		}},
	"D017: a silent server opens the circuit": {func(p *holdfast.Policy) { once(p); p.Timeout.Attempt = 30 * time.Millisecond }, []http.HandlerFunc{silent},
		func(t *testing.T, w *wire) {
			for range 5 {
				_, _, err := w.do(t, t.Context(), http.MethodGet)
				require.ErrorIs(t, err, timeout.ErrExceeded)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var outer *url.Error
				require.ErrorAs(t, err, &outer)
				require.True(t, outer.Timeout())
			}
			_, _, err := w.do(t, t.Context(), http.MethodGet)
			require.ErrorIs(t, err, breaker.ErrOpen)
		}},
	"D032: an attempt that took too long is repeated": {func(p *holdfast.Policy) { p.Timeout.Attempt = 30 * time.Millisecond }, []http.HandlerFunc{silent, silent, status(200, "third")},
		func(t *testing.T, w *wire) {
			_, text, err := w.do(t, t.Context(), http.MethodGet)
			require.NoError(t, err)
			require.Equal(t, "third", text)
		}},
	"D016, D052: a caller that leaves is no failure": {func(p *holdfast.Policy) { p.Timeout = timeout.Off() }, []http.HandlerFunc{silent},
		func(t *testing.T, w *wire) {
			gone := errors.New("the page was closed")
			for range 8 {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(10*time.Millisecond, func() { cancel(gone) })
				_, _, err := w.do(t, ctx, http.MethodGet)
				require.Error(t, err)
				require.NotErrorIs(t, err, timeout.ErrExceeded)
				require.NotErrorIs(t, err, breaker.ErrOpen)
			}
		}},
	"K2: a permit lives as long as the body": {func(p *holdfast.Policy) { p.Bulkhead = &bulkhead.Config{Limit: 1} }, []http.HandlerFunc{status(200, "held")},
		func(t *testing.T, w *wire) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/", nil)
			require.NoError(t, err)
			resp, err := w.client.Do(req)
			require.NoError(t, err)
			_, _, err = w.do(t, t.Context(), http.MethodGet)
			require.ErrorIs(t, err, bulkhead.ErrFull)
			require.NoError(t, resp.Body.Close())
			_, text, err := w.do(t, t.Context(), http.MethodGet)
			require.NoError(t, err)
			require.Equal(t, "held", text)
		}},
	"D051: a body that stalls is cut off": {func(p *holdfast.Policy) { p.Timeout.Idle = 30 * time.Millisecond },
		[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		func(t *testing.T, w *wire) {
			resp, text, err := w.do(t, t.Context(), http.MethodGet)
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, "begun", text)
			require.ErrorIs(t, err, timeout.ErrExceeded)
		}},
	"H3: one that breaks off is a failure": {nil,
		[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		func(t *testing.T, w *wire) {
			for range 5 {
				_, _, err := w.do(t, t.Context(), http.MethodGet)
				require.Error(t, err)
				require.NotErrorIs(t, err, breaker.ErrOpen)
			}
			_, _, err := w.do(t, t.Context(), http.MethodGet)
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Len(t, w.script.hits(), 5)
		}},
	"D039: a Retry-After beyond the cap ends the call": {nil,
		[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(429)
		}},
		func(t *testing.T, w *wire) {
			resp, _, err := w.do(t, t.Context(), http.MethodGet)
			require.NoError(t, err)
			require.Equal(t, 429, resp.StatusCode)
			require.ErrorIs(t, httpmw.Stopped(resp), retry.ErrRetryAfter)
			require.Len(t, w.script.hits(), 1)
		}},
	"D069: a redirect keeps the body": {nil,
		[]http.HandlerFunc{
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
			},
			status(503, ""), status(200, "there"),
		},
		func(t *testing.T, w *wire) {
			_, text, err := w.do(t, t.Context(), http.MethodPut)
			require.NoError(t, err)
			require.Equal(t, "there", text)
			for _, h := range w.script.hits() {
				require.Equal(t, "the request", h.body)
			}
		}},
}

// Every scenario comes out the same over HTTP/1.1 and HTTP/2, in memory and over TCP.
func TestScenariosOverEachWire(t *testing.T) {
	for name, sc := range scenarios {
		policy := func() holdfast.Policy {
			p := quick()
			if sc.policy != nil {
				sc.policy(&p)
			}
			return p
		}
		t.Run("in memory/"+name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				s := start(t, proto, policy(), answers(sc.steps...))
				sc.play(t, &wire{s.URL, s.client, s.script})
				synctest.Wait()
			})
		})
		for proto, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			t.Run("over TCP/"+proto+"/"+name, func(t *testing.T) {
				s := answers(sc.steps...)
				server := httptest.NewUnstartedServer(s)
				server.EnableHTTP2 = http2
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				server.StartTLS()
				t.Cleanup(server.Close)
				p := policy()
				if !p.Timeout.IsOff() { // real time: a busy machine must not pass for a silent server
					roomy := *p.Timeout
					roomy.Attempt *= 10
					p.Timeout = &roomy
				}
				k := newKit(t, p)
				client := server.Client()
				client.Transport = httpmw.NewTransport(client.Transport, k)
				sc.play(t, &wire{server.URL, client, s})
				for _, h := range s.hits() {
					require.Equal(t, http2, h.major == 2)
				}
			})
		}
	}
}
