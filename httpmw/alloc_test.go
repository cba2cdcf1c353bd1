package httpmw_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// costOf returns what a run allocates: objects, and bytes.
func costOf(run func()) (allocs, bytes float64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	run()
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		run()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / runs, float64(after.TotalAlloc-before.TotalAlloc) / runs
}

// adds requires of what a transport adds to the requests of its base to be just so many
// allocations, and no more than so many bytes. What others allocate meanwhile is less
// than one for a run.
func adds(t *testing.T, name string, base, kit func(), allocs, bytes float64) {
	t.Helper()
	bareAllocs, bareBytes := costOf(base)
	kitAllocs, kitBytes := costOf(kit)
	require.InDelta(t, allocs, kitAllocs-bareAllocs, 0.9, name)
	if bytes >= 0 {
		require.LessOrEqual(t, kitBytes-bareBytes, bytes+8, name)
	}
}

// sends returns what makes one request after the other and reads the answers whole.
func sends(t *testing.T, ctx context.Context, rt http.RoundTripper, method, url, body string) func() {
	return func() {
		var content io.Reader
		if body != "" {
			content = strings.NewReader(body)
		}
		req, err := http.NewRequestWithContext(ctx, method, url, content)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := rt.RoundTrip(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
}

// What the whole stack adds to a request, over a base transport that answers at once. A
// piece of 448 bytes is the request with its contexts.
func TestAllocations(t *testing.T) {
	background := context.Background()
	sooner, cancel := context.WithTimeout(background, 5*time.Second)
	defer cancel()
	standard, once := holdfast.Policy{}, holdfast.Policy{Retry: retry.Off(), Breaker: breaker.Off()}
	free := holdfast.Policy{Retry: retry.Off(), Timeout: timeout.Off()}
	mayHedge := holdfast.Policy{Retry: &retry.Policy{Hedge: retry.Hedge{Percentile: 0.95}}}
	none := func() (*http.Response, error) { return &http.Response{StatusCode: 200, Body: http.NoBody}, nil }
	full := func() (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("answer")), ContentLength: 6}, nil
	}
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	down := func() (*http.Response, error) { return nil, refused }
	for name, tc := range map[string]struct {
		policy        holdfast.Policy
		ctx           context.Context
		method, body  string
		base          func() (*http.Response, error)
		allocs, bytes float64
	}{
		"nothing to add":                       {free, background, "GET", "", none, 0, 0},
		"once, the caller's deadline sooner":   {once, sooner, "GET", "", none, 0, 0},
		"once, with a limit":                   {once, background, "GET", "", none, 2, 448},
		"once, with a body":                    {once, sooner, "PUT", "hello", none, 0, 0},
		"once, and an error":                   {once, sooner, "GET", "", down, 0, 0},
		"GET":                                  {standard, background, "GET", "", none, 1, 448},
		"GET, the caller's deadline sooner":    {standard, sooner, "GET", "", none, 1, 448},
		"PUT":                                  {standard, background, "PUT", "hello", none, 3, 512},
		"POST, traced":                         {standard, background, "POST", "hello", none, 7, -1},
		"PATCH, traced, might hedge":           {mayHedge, background, "PATCH", "", none, 5, -1},
		"a body":                               {standard, background, "GET", "", full, 5, -1},
		"a body, the caller's deadline sooner": {standard, sooner, "GET", "", full, 5, -1},
	} {
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Body != nil {
				req.Body.Close()
			}
			return tc.base()
		})
		const url = "http://api.example.com/"
		kit := httpmw.NewTransport(base, newKit(t, tc.policy))
		adds(t, name, sends(t, tc.ctx, base, tc.method, url, tc.body), sends(t, tc.ctx, kit, tc.method, url, tc.body), tc.allocs, tc.bytes)
	}
}

// What the whole stack adds to a request over a connection, whose transport waits for the
// context to end.
func TestAllocationsOverLoopback(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }))
	defer s.Close()
	base := new(http.Transport)
	defer base.CloseIdleConnections()
	sooner, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		limit  time.Duration
		allocs float64
	}{
		"GET":                               {context.Background(), 10 * time.Second, 12},
		"GET, the caller's deadline sooner": {sooner, time.Hour, 5},
	} {
		kit := httpmw.NewTransport(base, newKit(t, holdfast.Policy{Timeout: &timeout.Limits{Total: tc.limit}}))
		adds(t, name, sends(t, tc.ctx, base, "GET", s.URL, ""), sends(t, tc.ctx, kit, "GET", s.URL, ""), tc.allocs, -1)
	}
}

// The whole stack over a base that answers at once, beside that base.
func BenchmarkStub(b *testing.B) {
	ballast := make([]byte, 64<<20) // keeps the collector out
	ballast[0] = 1
	sooner, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			_, _ = io.Copy(io.Discard, req.Body)
			req.Body.Close()
		}
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	})
	k, err := holdfast.New(holdfast.Config{})
	if err != nil {
		b.Fatal(err)
	}
	kit := httpmw.NewTransport(base, k)
	for _, bc := range []struct {
		name string
		ctx  context.Context
		body int
	}{{"GET", context.Background(), 0}, {"GETCallerSooner", sooner, 0}, {"PUT64K", context.Background(), 64 << 10}} {
		method, content := http.MethodGet, strings.Repeat("x", bc.body)
		if bc.body > 0 {
			method = http.MethodPut
		}
		for name, rt := range map[string]http.RoundTripper{"Bare": base, "Kit": kit} {
			b.Run(bc.name+name, func(b *testing.B) {
				b.ReportAllocs()
				req, err := http.NewRequestWithContext(bc.ctx, method, "http://api.example.com/", nil)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if bc.body > 0 {
						req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
						req.Body, _ = req.GetBody()
						req.ContentLength = int64(bc.body)
					}
					if _, err := rt.RoundTrip(req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
