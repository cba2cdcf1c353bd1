package telemetry_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/telemetry"
)

// wire is a transport without a network.
type wire func(*http.Request) (*http.Response, error)

func (w wire) RoundTrip(req *http.Request) (*http.Response, error) { return w(req) }

func answer(req *http.Request, status int) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x")), ContentLength: 1, Request: req}
}

func fetch(t *testing.T, transport http.RoundTripper, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp
}

// TestO1: a call that moved on to another upstream is counted where it did.
func TestO1_FailoverIsMeasured(t *testing.T) {
	k := newKit(t, "shop", holdfast.Policy{Retry: retry.Off()})
	_, collect := meter(t, telemetry.Metrics{}, k)
	r := traced(t, k, telemetry.Traces{})
	base := wire(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host == "a.test" {
			return answer(req, http.StatusServiceUnavailable), nil
		}
		return answer(req, http.StatusOK), nil
	})
	transport, err := httpmw.Failover(base, k, []httpmw.Upstream{{Name: "a", URL: "http://a.test"}, {Name: "b", URL: "http://b.test"}})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, fetch(t, transport, "http://a.test/x").StatusCode)
	got := collect()
	require.EqualValues(t, 1, got.of("holdfast.failover.sent").sum(), got)
	require.EqualValues(t, 2, got.of("holdfast.attempts").sum(), got)
	require.Len(t, r.of(trace.SpanKindClient), 2, "each hop has its span")
	require.Equal(t, []string{"holdfast.failover holdfast.attempt=2 holdfast.from=a holdfast.after=unavailable"}, events(r.of(trace.SpanKindInternal)[0]))
}
