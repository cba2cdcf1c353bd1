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
