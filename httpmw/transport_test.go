package httpmw_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

func TestAHealthyServerIsCalledOnce(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, holdfast.Policy{}, answers(status(200, "hello")))
		code, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, 200, code)
		require.Equal(t, "hello", body)
		require.Len(t, s.script.hits(), 1)
	})
}

// R2, D038: what is repeated by the method's safety and the key.
func TestD038_OnlyWhatMayBeRepeatedIs(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		header http.Header
		hits   int
	}{
		"GET":               {http.MethodGet, nil, 3},
		"HEAD":              {http.MethodHead, nil, 3},
		"OPTIONS":           {http.MethodOptions, nil, 3},
		"PUT":               {http.MethodPut, nil, 3},
		"DELETE":            {http.MethodDelete, nil, 3},
		"POST":              {http.MethodPost, nil, 1},
		"PATCH":             {http.MethodPatch, nil, 1},
		"a method unknown":  {"PURGE", nil, 1},
		"POST with a key":   {http.MethodPost, http.Header{"Idempotency-Key": {"k"}}, 3},
		"POST with X- key":  {http.MethodPost, http.Header{"X-Idempotency-Key": {"k"}}, 3},
		"PATCH with no key": {http.MethodPatch, http.Header{"Idempotency-Key": {}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, memnet.HTTP1, quick(), answers(status(503, "down")))
				req := s.request(t, t.Context(), tc.method, "/", "")
				req.Header = tc.header
				code, _, err := s.do(t, req)
				require.NoError(t, err)
				require.Equal(t, 503, code)
				require.Len(t, s.script.hits(), tc.hits)
			})
		})
	}
}

// D038, D032: a POST that may have arrived is not repeated; one that was never
// sent is.
func TestD038_APostIsRepeatedIfNothingWasSent(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(silent))
		_, _, err := s.do(t, s.request(t, t.Context(), http.MethodPost, "/orders", "lamp"))
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Len(t, s.script.hits(), 1)
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(201, "ordered")))
		s.Wire.Refuse(true)
		time.AfterFunc(5*time.Millisecond, func() { s.Wire.Refuse(false) })
		code, _, err := s.do(t, s.request(t, t.Context(), http.MethodPost, "/orders", "lamp"))
		require.NoError(t, err)
		require.Equal(t, 201, code)
		require.Equal(t, "lamp", s.script.hits()[0].body)
		require.Len(t, s.script.hits(), 1)
	})
}

// D028: an open circuit is refused at once, and the error is seen through
// *url.Error.
func TestD028_AnOpenCircuitIsRefusedAtOnce(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(503, "")))
		for range 2 {
			_, _, err := s.get(t, "/")
			require.NoError(t, err)
		}
		require.Len(t, s.script.hits(), 5)
		begin := time.Now()
		_, _, err := s.get(t, "/")
		require.Zero(t, time.Since(begin))
		require.Len(t, s.script.hits(), 5)
		require.ErrorIs(t, err, breaker.ErrOpen)
		var refusal *breaker.OpenError
		require.ErrorAs(t, err, &refusal)
		require.Positive(t, refusal.RetryAfter())
		var outer *url.Error
		require.ErrorAs(t, err, &outer)
		require.False(t, outer.Timeout())
	})
}

// D052, T2: the table of who ended an attempt.
func TestD052_WhoEndedTheAttempt(t *testing.T) {
	cause := errors.New("the page was closed")
	for name, tc := range map[string]struct {
		caller                       func(context.Context) (context.Context, context.CancelFunc)
		exceeded, deadline, canceled bool
		hits                         int
	}{
		"the kit's limit": {
			func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
			true, true, false, 3,
		},
		"the caller's deadline": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, 50*time.Millisecond, cause)
			},
			false, true, false, 1,
		},
		"the caller's cancellation": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
				return ctx, func() {}
			},
			false, false, true, 1,
		},
	} {
		for inside, policy := range map[string]holdfast.Policy{"retry": quick(), "a hedge": hedging()} {
			t.Run(name+" inside "+inside, func(t *testing.T) {
				overEach(t, func(t *testing.T, proto memnet.Proto) {
					s := start(t, proto, policy, answers(silent))
					ctx, cancel := tc.caller(t.Context())
					defer cancel()
					_, _, err := s.do(t, s.request(t, ctx, http.MethodGet, "/", ""))
					require.Equal(t, tc.exceeded, errors.Is(err, timeout.ErrExceeded), err)
					require.Equal(t, tc.deadline, errors.Is(err, context.DeadlineExceeded), err)
					require.Equal(t, tc.canceled, errors.Is(err, context.Canceled), err)
					require.Equal(t, !tc.exceeded, errors.Is(err, cause), err)
					var outer *url.Error
					require.ErrorAs(t, err, &outer)
					require.Equal(t, !tc.canceled, outer.Timeout())
					hits := tc.hits
					if inside == "a hedge" {
						hits = 2
					}
					require.Len(t, s.script.hits(), hits)
				})
			})
		}
	}
}

// D016: callers that leave are no failures.
func TestD016_CallersThatLeaveAreNoFailures(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Timeout = timeout.Off()
		s := start(t, proto, p, answers(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-r.Context().Done():
			}
		}))
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			_, _, err := s.do(t, s.request(t, ctx, http.MethodGet, "/", ""))
			require.ErrorIs(t, err, context.Canceled)
		}
		code, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, 200, code)
	})
}

// D017: the kit's own limit is a failure, whatever the transport makes of it.
func TestD017_ASilentServerOpensTheBreaker(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Retry = retry.Off()
		s := start(t, proto, p, answers(silent))
		for range 5 {
			_, _, err := s.get(t, "/")
			require.ErrorIs(t, err, timeout.ErrExceeded)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, context.Canceled)
		}
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Len(t, s.script.hits(), 5)
	})
}

// D032: an attempt's limit under a living caller is repeated.
func TestD032_AnAttemptThatTookTooLongIsRepeated(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(silent, silent, status(200, "at last")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, body, err := s.do(t, s.request(t, ctx, http.MethodGet, "/", ""))
		require.NoError(t, err)
		require.Equal(t, "at last", body)
		require.Len(t, s.script.hits(), 3)
		require.Equal(t, 220*time.Millisecond, time.Since(begin))
	})
}

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

// H1: redirects and cookies stay the client's business; the method and body of a
// 307 survive (D069).
func TestD069_ARedirectKeepsTheBody(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		big := strings.Repeat("0123456789abcdef", 4096) // 64 KiB
		s := start(t, proto, quick(), answers(
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/b", http.StatusTemporaryRedirect) },
			status(200, "done"),
		))
		code, _, err := s.do(t, s.request(t, t.Context(), http.MethodPost, "/a", big))
		require.NoError(t, err)
		require.Equal(t, 200, code)
		hits := s.script.hits()
		require.Len(t, hits, 2)
		require.Equal(t, "/b", hits[1].path)
		require.Equal(t, sha256.Sum256([]byte(big)), sha256.Sum256([]byte(hits[1].body)))
	})
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

// Connections that fail are Unavailable: repeated where that is safe, and the
// cause is reachable (D034).
func TestD034_TheCauseOfNoAnswerIsReachable(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(200, "")))
		s.Wire.Refuse(true)
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, 3, s.Wire.Dials())
		var op *net.OpError
		require.ErrorAs(t, err, &op)
	})
}

// D048: what no repeat can mend is tried once and says nothing of the server.
func TestD048_PermanentFaultsAreTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, memnet.H2, quick(), answers(status(200, "")))
		s.Transport.TLSClientConfig.RootCAs = nil // trusts nobody
		for range 10 {
			_, _, err := s.get(t, "/")
			require.ErrorContains(t, err, "certificate")
			require.NotErrorIs(t, err, breaker.ErrOpen)
		}
		require.Equal(t, 10, s.Wire.Dials())
	})
	k := newKit(t, quick())
	client := &http.Client{Transport: httpmw.NewTransport(&http.Transport{}, k)}
	for range 10 {
		_, err := client.Get("foo://api.test/")
		require.ErrorContains(t, err, "unsupported protocol scheme")
	}
}

// G1's relative for HTTP: a full bulkhead is a refusal that errors.Is sees.
func TestAFullBulkheadIsSeenThroughTheClient(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		s := start(t, proto, p, answers(status(200, "one")))
		first, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		_, _, err = s.get(t, "/") // K2: the first body is not closed yet
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.NoError(t, first.Body.Close())
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, "one", body)
	})
}

func readAll(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(all)
}
