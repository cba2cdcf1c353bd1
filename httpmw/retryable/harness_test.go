package retryable_test

import (
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/retryable"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// hit is what the server saw of one request.
type hit struct {
	method, uri, body string
	header            http.Header
}

// script answers each request by the next of its steps, the last one for ever.
type script struct {
	mu    sync.Mutex
	seen  []hit
	steps []http.HandlerFunc
}

func answers(steps ...http.HandlerFunc) *script { return &script{steps: steps} }

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	step := s.steps[min(len(s.seen), len(s.steps)-1)]
	s.seen = append(s.seen, hit{r.Method, r.URL.RequestURI(), string(body), r.Header.Clone()})
	s.mu.Unlock()
	step(w, r)
}

func (s *script) hits() []hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]hit(nil), s.seen...)
}

func (s *script) paths() (all []string) {
	for _, h := range s.hits() {
		all = append(all, h.uri)
	}
	return all
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func retryAfter(code int, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", value)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "later")
	}
}

// quick has three attempts 10 ms apart, and a breaker that opens for a second
// when five of the last ten attempts failed.
func quick() holdfast.Policy {
	return holdfast.Policy{
		Retry:    &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Factor: 1, Jitter: retry.NoJitter}},
		Breaker:  &breaker.Config{Window: breaker.Window{Calls: 10}, MinCalls: 5, FailureRate: 0.5, Cooldown: time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1},
		Timeout:  &timeout.Limits{Attempt: 100 * time.Millisecond},
		Bulkhead: &bulkhead.Config{Limit: 10},
	}
}

// patient is quick without a breaker.
func patient() holdfast.Policy {
	p := quick()
	p.Breaker = breaker.Off()
	return p
}

func kit(t *testing.T, p holdfast.Policy) *holdfast.Kit {
	t.Helper()
	k, err := holdfast.New(holdfast.Config{Default: p})
	require.NoError(t, err)
	return k
}

// vendor is the client of an API SDK: go-retryablehttp's own default but for the
// transport and the silent logger.
func vendor(base http.RoundTripper) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: base}
	client.Logger = nil
	return client
}

// setup is a vendor's client of a scripted server, with a kit in it.
type setup struct {
	*memnet.Server
	client *retryablehttp.Client
	script *script
}

func start(t *testing.T, proto memnet.Proto, p holdfast.Policy, s *script, opts ...httpmw.Option) *setup {
	t.Helper()
	server := memnet.Start(t, proto, s, func(s *http.Server, _ *http.Transport) {
		s.ErrorLog = log.New(io.Discard, "", 0)
	})
	client := vendor(server.Transport)
	require.NoError(t, retryable.Install(client, kit(t, p), opts...))
	return &setup{server, client, s}
}

func (s *setup) request(t *testing.T, method, path, body string) *retryablehttp.Request {
	t.Helper()
	var raw any
	if body != "" {
		raw = strings.NewReader(body)
	}
	req, err := retryablehttp.NewRequestWithContext(t.Context(), method, s.URL+path, raw)
	require.NoError(t, err)
	return req
}

// do makes a request and reads the response whole.
func (s *setup) do(t *testing.T, req *retryablehttp.Request) (code int, body string, err error) {
	t.Helper()
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	return resp.StatusCode, readAll(t, resp), nil
}

func (s *setup) get(t *testing.T, path string) (int, string, error) {
	t.Helper()
	return s.do(t, s.request(t, http.MethodGet, path, ""))
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// overEach runs a test in a bubble over HTTP/1.1, h2c and HTTP/2 with TLS.
func overEach(t *testing.T, test func(*testing.T, memnet.Proto)) {
	for _, proto := range memnet.Protos() {
		t.Run(string(proto), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, proto) })
		})
	}
}
