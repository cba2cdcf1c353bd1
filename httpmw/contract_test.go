package httpmw_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/timeout"
)

// H1: the caller's request is as it was, however often it is used (D070).
func TestH1_TheCallersRequestIsNotChanged(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, holdfast.Policy{Breaker: breaker.Off(), Retry: quick().Retry}, answers(status(503, "")))
		req := s.request(t, t.Context(), http.MethodGet, "/x", "")
		req.Header.Set("X-Own", "1")
		before := req.Clone(t.Context())
		for range 20 {
			resp, err := s.transport.RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, before.Header, req.Header)
		require.Equal(t, before.URL, req.URL)
		require.Nil(t, req.Body)
		for _, h := range s.script.hits() {
			require.Equal(t, []string{"1"}, h.header["X-Own"])
		}
	})
}

// H1: bad requests get a clear error, and their body is closed.
func TestH1_BadRequestsAreRefused(t *testing.T) {
	k := newKit(t, holdfast.Policy{})
	base := roundTrip(func(*http.Request) (*http.Response, error) { panic("the base is not asked") })
	tr := httpmw.NewTransport(base, k)

	good := func() *http.Request {
		req, err := http.NewRequest(http.MethodPost, "http://api.test/", nil)
		require.NoError(t, err)
		return req
	}
	for name, tc := range map[string]struct {
		change func(*http.Request)
		want   string
	}{
		"no URL":           {func(r *http.Request) { r.URL = nil }, "httpmw: the request has no URL"},
		"no scheme":        {func(r *http.Request) { r.URL.Scheme = "" }, "httpmw: the request's URL has no scheme"},
		"no host":          {func(r *http.Request) { r.URL.Host = "" }, "httpmw: the request's URL has no host"},
		"a bad method":     {func(r *http.Request) { r.Method = "GE T" }, `httpmw: the request's method "GE T" is no method`},
		"a bad name":       {func(r *http.Request) { r.Header = http.Header{"a b": {"1"}} }, `httpmw: the request's header name "a b" is no name`},
		"a bad value":      {func(r *http.Request) { r.Header.Set("A", "secret\n") }, "httpmw: the request's header A has a control character in a value"},
		"a bad host":       {func(r *http.Request) { r.Host = "a b" }, "httpmw: the request's Host is no host"},
		"a bad trailer":    {func(r *http.Request) { r.Trailer = http.Header{"a b": nil} }, `httpmw: the request's trailer name "a b" is no name`},
		"a bad override":   {func(r *http.Request) { *r = *r.WithContext(badOverride(r.Context())) }, "holdfast: Override.Timeout.Attempt = -1ns: must not be negative; 0 is no limit"},
		"a done context":   {func(r *http.Request) { *r = *r.WithContext(done(r.Context())) }, "context canceled"},
		"a wrong fallback": {func(r *http.Request) { *r = *r.WithContext(wrongFallback(r.Context())) }, "holdfast: Override.Fallback: only a ReadOnly call may have one, and this is unsafe"},
	} {
		t.Run(name, func(t *testing.T) {
			req, body := good(), &opaque{Reader: strings.NewReader("x")}
			req.Body = body
			tc.change(req)
			resp, err := tr.RoundTrip(req)
			require.EqualError(t, err, tc.want)
			require.Nil(t, resp)
			require.Equal(t, 1, body.closed())
		})
	}
	_, err := tr.RoundTrip(nil)
	require.EqualError(t, err, "httpmw: the request is nil")
}

func badOverride(ctx context.Context) context.Context {
	return holdfast.WithOverride(ctx, holdfast.Override{Timeout: &timeout.Limits{Attempt: -1}})
}

func wrongFallback(ctx context.Context) context.Context {
	answer := func(context.Context, fallback.Failure) (any, error) { return nil, nil }
	return holdfast.WithOverride(ctx, holdfast.Override{Fallback: &fallback.Policy{Answer: answer}})
}

func done(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// H1: a nil header map is fine (D070).
func TestH1_ANilHeaderIsFine(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(200, "")))
		req := s.request(t, t.Context(), http.MethodGet, "/", "")
		req.Header = nil
		resp, err := s.transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Nil(t, req.Header)
	})
}

// H1: constructors refuse what they cannot use; only the short one panics.
func TestH1_ConstructorsRefuseBadInput(t *testing.T) {
	_, err := httpmw.New(nil, nil)
	require.ErrorContains(t, err, "the kit is nil")
	k := newKit(t, holdfast.Policy{})
	_, err = httpmw.New(nil, k, httpmw.WithBufferLimit(-1), httpmw.Option{}, httpmw.WithClassifier(nil))
	require.ErrorContains(t, err, "WithBufferLimit = -1: must not be negative")
	require.ErrorContains(t, err, "WithClassifier: must not be nil")
	require.Panics(t, func() { httpmw.NewTransport(nil, nil) })
	require.NotPanics(t, func() { httpmw.NewTransport(nil, k) })
}

// H1: a base that breaks the contract does not break ours.
func TestH1_ABaseThatReturnsNothing(t *testing.T) {
	k := newKit(t, holdfast.Policy{})
	tr := httpmw.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) { return nil, nil }), k)
	req, err := http.NewRequest(http.MethodPost, "http://api.test/", nil)
	require.NoError(t, err)
	_, err = tr.RoundTrip(req)
	require.EqualError(t, err, "httpmw: the base transport returned neither a response nor an error")
}

// H1: CloseIdleConnections reaches the base.
func TestH1_IdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, memnet.HTTP1, quick(), answers(status(200, "")))
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, 1, s.Wire.Open())
		s.client.CloseIdleConnections()
		synctest.Wait()
		require.Zero(t, s.Wire.Open())
	})
}
