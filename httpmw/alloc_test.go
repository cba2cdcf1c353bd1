package httpmw_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// What the stack adds to a request in allocations, over a base transport that
// answers at once and without a body. That the policy could hedge costs requests
// nothing that are not.
func TestAllocations(t *testing.T) {
	sooner, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	base := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, nil
	})
	hedge := &retry.Policy{Hedge: retry.Hedge{Percentile: 0.95}}
	request := func(ctx context.Context, method, body string) *http.Request {
		req, err := http.NewRequestWithContext(ctx, method, "http://api.example.com/", strings.NewReader(body))
		require.NoError(t, err)
		if body == "" {
			req.Body, req.GetBody = nil, nil
		}
		return req
	}
	for name, tc := range map[string]struct {
		policy holdfast.Policy
		req    *http.Request
		most   float64
	}{
		"no limit, once":                {holdfast.Policy{Retry: retry.Off(), Timeout: timeout.Off()}, request(t.Context(), "GET", ""), 4},
		"limits, repeatable":            {holdfast.Policy{}, request(t.Context(), "GET", ""), 5},
		"the caller's deadline sooner":  {holdfast.Policy{}, request(sooner, "GET", ""), 4},
		"a body":                        {holdfast.Policy{}, request(t.Context(), "PUT", "hello"), 7},
		"a hedge in the policy, traced": {holdfast.Policy{Retry: hedge, Timeout: timeout.Off()}, request(t.Context(), "PATCH", ""), 10},
	} {
		transport := httpmw.NewTransport(base, newKit(t, tc.policy))
		run := func(rt http.RoundTripper) float64 {
			return testing.AllocsPerRun(200, func() {
				resp, err := rt.RoundTrip(tc.req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			})
		}
		require.LessOrEqual(t, run(transport)-run(base), tc.most, name)
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
