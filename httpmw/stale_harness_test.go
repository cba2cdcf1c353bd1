package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// origin is a server that can be down: it answers 503 then.
type origin struct {
	*setup
	kit  *holdfast.Kit
	down atomic.Bool
	hits atomic.Int64
	mu   sync.Mutex
	told []holdfast.Fallback
}

// staleOrigin starts a server with h, and a client of it that keeps its answers
// as told.
func staleOrigin(t *testing.T, proto memnet.Proto, st fallback.Stale, h http.HandlerFunc, opts ...httpmw.Option) *origin {
	t.Helper()
	o := &origin{}
	if st.Store == nil {
		st.Store = newStore(t)
	}
	p := quick()
	p.Retry, p.Fallback = retry.Off(), &fallback.Policy{Stale: &st}
	p.Breaker = &breaker.Config{Consecutive: 1000} // it opens when a test says so
	kit, err := holdfast.New(holdfast.Config{
		Default: p,
		Methods: map[string]holdfast.Policy{"POST /search": {Safety: call.ReadOnly}},
		Hooks:   holdfast.Hooks{Fallback: o.tell},
	})
	require.NoError(t, err)
	o.kit = kit
	server := memnet.Start(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.hits.Add(1)
		if o.down.Load() {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		h(w, r)
	}))
	transport, err := httpmw.New(server.Transport, kit, opts...)
	require.NoError(t, err)
	o.setup = &setup{server, transport, &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil}
	return o
}

func (o *origin) tell(_ context.Context, f holdfast.Fallback) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, f)
}

func newStore(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.New(16 << 20)
	require.NoError(t, err)
	return store
}

// open lets the breaker open.
func (o *origin) open(t *testing.T) {
	t.Helper()
	for _, b := range o.kit.Breakers() {
		b.ForceOpen("the test asks for it")
	}
}

// answer is what a client has seen.
type answer struct {
	code   int
	body   string
	header http.Header
	err    error
}

func (a answer) stale() bool { return strings.Contains(a.header.Get("Cache-Status"), "holdfast; hit") }

func (o *origin) send(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	req := o.request(t, t.Context(), method, path, body)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(all), resp.Header, err}
}

func forAll() fallback.Stale { return fallback.Stale{Identity: fallback.SharedByAll} }

// byUser keeps the answers of each Authorization apart.
func byUser() fallback.Stale {
	return fallback.Stale{Identity: func(_ context.Context, r fallback.Request) string { return r.Get("authorization") }}
}

func parrot(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
}
