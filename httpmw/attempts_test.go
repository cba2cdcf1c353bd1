package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// R9: one key per call, the same on every attempt; the caller's own wins (D037).
func TestD037_OneKeyPerCall(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Retry.IdempotencyKey = true
		p.Breaker = breaker.Off()
		s := start(t, proto, p, answers(status(503, ""), status(503, ""), status(200, ""), status(503, ""), status(200, "")))
		keys := func(req *http.Request) (sent []string) {
			before := len(s.script.hits())
			_, _, err := s.do(t, req)
			require.NoError(t, err)
			for _, h := range s.script.hits()[before:] {
				require.LessOrEqual(t, len(h.header["Idempotency-Key"]), 1)
				sent = append(sent, h.header.Get("Idempotency-Key"))
			}
			return sent
		}
		post := func() *http.Request { return s.request(t, t.Context(), http.MethodPost, "/", "order") }
		first := post()
		sent := keys(first)
		require.Len(t, sent, 3)
		require.NotEmpty(t, sent[0])
		require.Equal(t, []string{sent[0], sent[0], sent[0]}, sent)
		require.Empty(t, first.Header, "the caller's request is not changed")

		second := keys(post())
		require.Len(t, second, 2)
		require.NotEqual(t, sent[0], second[0])

		own := post()
		own.Header.Set("Idempotency-Key", "mine")
		require.Equal(t, []string{"mine"}, keys(own))
		require.Equal(t, []string{""}, keys(s.request(t, t.Context(), http.MethodPut, "/", "")), "no need of one")
	})
}

// R11: the hook sees the attempt's own copy, and the number goes out (D049).
func TestD049_EachAttemptIsSignedAnew(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Retry.IdempotencyKey = true
		s := start(t, proto, p, answers(status(503, ""), status(503, ""), status(200, "")),
			httpmw.WithAttemptNumberHeader("x-attempts-before"),
			httpmw.WithAttemptHook(func(req *http.Request, attempt int) error {
				req.Header.Add("X-Sig", fmt.Sprintf("%d/%s", attempt, req.Header.Get("Idempotency-Key")))
				return nil
			}))
		req := s.request(t, t.Context(), http.MethodPost, "/", "order")
		_, _, err := s.do(t, req)
		require.NoError(t, err)
		require.Empty(t, req.Header)
		hits := s.script.hits()
		require.Len(t, hits, 3)
		key := hits[0].header.Get("Idempotency-Key")
		require.NotEmpty(t, key)
		for i, h := range hits {
			require.Equal(t, []string{key}, h.header["Idempotency-Key"])
			require.Equal(t, []string{fmt.Sprintf("%d/%s", i+1, key)}, h.header["X-Sig"])
			require.Equal(t, []string{"", "1", "2"}[i], h.header.Get("X-Attempts-Before"))
		}
	})
}

// A hook that cannot sign ends the call: nothing was sent, and it says nothing of
// the server.
func TestAHookThatFailsEndsTheCall(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		unsigned := errors.New("no credentials")
		s := start(t, proto, narrow(), answers(status(200, "")), httpmw.WithAttemptHook(func(*http.Request, int) error { return unsigned }))
		for range 10 {
			body := &opaque{Reader: strings.NewReader("x")}
			req := s.request(t, t.Context(), http.MethodPut, "/", "")
			req.Body = body
			_, err := s.transport.RoundTrip(req)
			require.ErrorIs(t, err, unsigned)
			require.Equal(t, 1, body.closed())
		}
		require.Empty(t, s.script.hits())
	})
}

// D045: a header of the server's choice forbids the repeat.
func TestD045_AHeaderForbidsTheRepeat(t *testing.T) {
	for _, opts := range [][]httpmw.Option{{httpmw.WithNoRetryHeader("X-Overloaded")}, nil} {
		overEach(t, func(t *testing.T, proto memnet.Proto) {
			s := start(t, proto, quick(), answers(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Overloaded", "")
				w.WriteHeader(503)
			}), opts...)
			_, _, err := s.get(t, "/")
			require.NoError(t, err)
			require.Len(t, s.script.hits(), map[bool]int{true: 1, false: 3}[opts != nil])
		})
	}
	k := newKit(t, holdfast.Policy{})
	_, err := httpmw.New(nil, k, httpmw.WithNoRetryHeader("a b"), httpmw.WithAttemptNumberHeader(""), httpmw.WithAttemptHook(nil))
	require.ErrorContains(t, err, `WithNoRetryHeader = "a b": is no header name`)
	require.ErrorContains(t, err, `WithAttemptNumberHeader = "": is no header name`)
	require.ErrorContains(t, err, "WithAttemptHook: must not be nil")
}

// D044, R8: a transport inside another one's attempt does not retry.
func TestD044_LayersDoNotMultiply(t *testing.T) {
	for name, tc := range map[string]struct {
		even bool
		hits int
	}{"by default": {false, 3}, "told to": {true, 9}} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				p := quick()
				p.Breaker = breaker.Off()
				s := start(t, proto, p, answers(status(503, "")))
				inner := p
				inner.Retry = &retry.Policy{MaxAttempts: 3, Backoff: p.Retry.Backoff, EvenNested: tc.even}
				k := newKit(t, inner)
				outerKit := newKit(t, p)
				client := &http.Client{Transport: httpmw.NewTransport(httpmw.NewTransport(s.Transport, k), outerKit)}
				resp, err := client.Get(s.URL)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Len(t, s.script.hits(), tc.hits)
			})
		})
	}
}

// T3: Idle bounds one Read; a slow but moving body is not hit, and the caller's
// own pauses do not count (D051).
func TestD051_ABodyThatStallsIsCutOff(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := narrow()
		p.Timeout = &timeout.Limits{Idle: 100 * time.Millisecond}
		p.Retry = retry.Off()
		stalling := func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "1")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		s := start(t, proto, p, answers(dripping(40, 50*time.Millisecond, "."), stalling))
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Len(t, body, 40)
		for range 4 {
			begin := time.Now()
			_, body, err = s.get(t, "/")
			require.Equal(t, "1", body)
			require.Equal(t, 100*time.Millisecond, time.Since(begin))
			require.ErrorIs(t, err, timeout.ErrExceeded)
			require.ErrorContains(t, err, "Idle limit of 100ms exceeded")
		}
		_, _, err = s.get(t, "/")
		require.ErrorIs(t, err, breaker.ErrOpen, "a stall is a failure, and its permit came back")
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) { // the caller's own pause
		p := quick()
		p.Timeout = &timeout.Limits{Idle: 100 * time.Millisecond}
		s := start(t, proto, p, answers(status(200, "here")))
		resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Equal(t, "here", readAll(t, resp.Body))
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) { // known length only, as Standard has it
		p := quick()
		p.Timeout = &timeout.Limits{Idle: 100 * time.Millisecond, IdleKnownLength: true}
		sized := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3")
			dripping(3, time.Second, ".")(w, r)
		}
		s := start(t, proto, p, answers(dripping(3, time.Second, "."), sized))
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, "...", body)
		_, _, err = s.get(t, "/")
		require.ErrorIs(t, err, timeout.ErrExceeded)
		synctest.Wait()
	})
}

// goodnight is a body whose server ends it in good order when it is cancelled.
type goodnight struct{ ctx context.Context }

func (g goodnight) Read([]byte) (int, error) {
	<-g.ctx.Done()
	return 0, io.EOF
}

func (goodnight) Close() error { return nil }

// A body that ends because a limit of ours has cut it off is not whole, however
// well it ends.
func TestT2_ABodyThatEndsWellBecauseItWasCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Timeout = &timeout.Limits{Idle: 30 * time.Millisecond}
		p.Breaker = &breaker.Config{Consecutive: 1}
		tr := over(t, func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: goodnight{r.Context()}}, nil
		}, p)
		resp, err := tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.NoError(t, resp.Body.Close())
		_, err = tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
		require.ErrorIs(t, err, breaker.ErrOpen, "it was booked as a failure")
	})
}

// R11, H1: a hook may change the URL of its copy, and of that alone.
func TestR11_AHookChangesItsOwnURL(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		var queries []string
		s := start(t, proto, quick(), answers(func(w http.ResponseWriter, r *http.Request) {
			queries = append(queries, r.URL.RawQuery)
			w.WriteHeader(503)
		}), httpmw.WithAttemptHook(func(req *http.Request, n int) error {
			q := req.URL.Query()
			q.Add("sig", fmt.Sprint(n))
			req.URL.RawQuery = q.Encode()
			return nil
		}))
		req := s.request(t, t.Context(), http.MethodGet, "/", "")
		_, _, err := s.do(t, req)
		require.NoError(t, err)
		require.Equal(t, []string{"sig=1", "sig=2", "sig=3"}, queries)
		require.Empty(t, req.URL.RawQuery)
	})
}
