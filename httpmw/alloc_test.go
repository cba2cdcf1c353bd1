package httpmw_test

import (
	"context"
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
		"no limit, once":                {holdfast.Policy{Retry: retry.Off(), Timeout: timeout.Off()}, request(t.Context(), "GET", ""), 8},
		"limits, repeatable":            {holdfast.Policy{}, request(t.Context(), "GET", ""), 13},
		"the caller's deadline sooner":  {holdfast.Policy{}, request(sooner, "GET", ""), 13},
		"a body":                        {holdfast.Policy{}, request(t.Context(), "PUT", "hello"), 17},
		"a hedge in the policy, traced": {holdfast.Policy{Retry: hedge, Timeout: timeout.Off()}, request(t.Context(), "PATCH", ""), 14},
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
