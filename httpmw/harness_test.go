package httpmw_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
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

// hit is what the server saw of one request.
type hit struct {
	method, path, body string
	length             int64
	header             http.Header
	major              int // of the protocol's version
}

// script answers each request by the next of its steps, the last one for ever,
// and keeps what it saw. It reads the request's body first.
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
	s.seen = append(s.seen, hit{r.Method, r.URL.Path, string(body), r.ContentLength, r.Header.Clone(), r.ProtoMajor})
	s.mu.Unlock()
	step(w, r)
}

func (s *script) hits() []hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]hit(nil), s.seen...)
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// silent answers nothing until the client leaves.
func silent(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	// Over TLS a client says that it closes before it does, and would still read an
	// answer that this brings about.
	panic(http.ErrAbortHandler)
}

// quick is a policy whose breaker opens after five failures in a row for a
// second, with three attempts and a wait of 10 ms between them.
func quick() holdfast.Policy {
	return holdfast.Policy{
		Retry:    &retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Factor: 1, Jitter: retry.NoJitter}},
		Breaker:  &breaker.Config{Window: breaker.Window{Calls: 10}, MinCalls: 5, FailureRate: 0.5, Cooldown: time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1},
		Timeout:  &timeout.Limits{Attempt: 100 * time.Millisecond},
		Bulkhead: &bulkhead.Config{Limit: 10},
	}
}

func newKit(t *testing.T, p holdfast.Policy) *holdfast.Kit {
	t.Helper()
	k, err := holdfast.New(holdfast.Config{Default: p})
	require.NoError(t, err)
	return k
}

// roundTrip is a transport that is one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// setup is a client of a scripted server through the kit.
type setup struct {
	*memnet.Server
	transport *httpmw.Transport
	client    *http.Client
	script    *script
}

func start(t *testing.T, proto memnet.Proto, p holdfast.Policy, s *script, opts ...httpmw.Option) *setup {
	t.Helper()
	return startTable(t, proto, holdfast.Config{Default: p}, s, opts...)
}

func startTable(t *testing.T, proto memnet.Proto, c holdfast.Config, s *script, opts ...httpmw.Option) *setup {
	t.Helper()
	k, err := holdfast.New(c)
	require.NoError(t, err)
	return startKit(t, proto, k, s, opts...)
}

func startKit(t *testing.T, proto memnet.Proto, k *holdfast.Kit, s *script, opts ...httpmw.Option) *setup {
	t.Helper()
	server := memnet.Start(t, proto, s, func(s *http.Server, _ *http.Transport) {
		s.ErrorLog = log.New(io.Discard, "", 0) // cut handshakes and the like are meant
	})
	transport, err := httpmw.New(server.Transport, k, opts...)
	require.NoError(t, err)
	return &setup{server, transport, &http.Client{Transport: transport}, s}
}

func (s *setup) request(t *testing.T, ctx context.Context, method, path, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, r)
	require.NoError(t, err)
	return req
}

// do makes a request and reads the response whole.
func (s *setup) do(t *testing.T, req *http.Request) (code int, body string, err error) {
	t.Helper()
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

func (s *setup) get(t *testing.T, path string) (int, string, error) {
	t.Helper()
	return s.do(t, s.request(t, t.Context(), http.MethodGet, path, ""))
}

// overEach runs a test in a bubble over HTTP/1.1, h2c and HTTP/2 with TLS.
func overEach(t *testing.T, test func(*testing.T, memnet.Proto)) {
	for _, proto := range memnet.Protos() {
		t.Run(string(proto), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, proto) })
		})
	}
}

// opaque hides all but the Read of a reader, so that http.NewRequest finds no
// GetBody, and tells when it was closed.
type opaque struct {
	io.Reader
	mu     sync.Mutex
	closes int
}

func (o *opaque) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closes++
	return nil
}

func (o *opaque) closed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closes
}
