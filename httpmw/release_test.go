package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// over returns a transport over a base that the test plays itself.
func over(t *testing.T, base roundTrip, p holdfast.Policy, opts ...httpmw.Option) *httpmw.Transport {
	t.Helper()
	k := newKit(t, p)
	tr, err := httpmw.New(base, k, opts...)
	require.NoError(t, err)
	return tr
}

func requestOf(t *testing.T, ctx context.Context, method string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://api.test/", body)
	require.NoError(t, err)
	return req
}

func response(code int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// waits is a reader that gives nothing until it is stopped.
func waits(stop <-chan struct{}) io.Reader {
	return readerFunc(func([]byte) (int, error) { <-stop; return 0, io.EOF })
}

// B1: a panic or Goexit in the fallback or in GetBody leaves no permit behind, and
// no body open.
func TestB1_PanicsBeyondTheAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*holdfast.Policy, *http.Request)
	}{
		"fallback": {func(p *holdfast.Policy, _ *http.Request) {
			p.Retry = retry.Off()
			p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { panic("boom") }}
		}},
		"GetBody": {func(_ *holdfast.Policy, req *http.Request) {
			req.Method, req.Body = http.MethodPut, io.NopCloser(readerFunc(strings.NewReader("x").Read))
			req.GetBody = func() (io.ReadCloser, error) { panic("boom") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := narrow()
				p.Breaker = breaker.Off()
				req := requestOf(t, t.Context(), http.MethodGet, nil)
				tc.change(&p, req)
				answer := &opaque{Reader: strings.NewReader("down")}
				tr := over(t, func(r *http.Request) (*http.Response, error) {
					if r.Body != nil {
						r.Body.Close()
					}
					resp := response(503, answer)
					resp.Body = answer
					return resp, nil
				}, p)
				for i := range 3 {
					require.PanicsWithValue(t, "boom", func() { _, _ = tr.RoundTrip(req) })
					synctest.Wait()
					require.Equal(t, i+1, answer.closed(), "the answer is closed, and the next call gets the permit")
				}
			})
		})
	}
}

// B1, H1: a panic in the base closes the caller's body, one in a classifier the
// response's.
func TestB1_PanicsCloseTheBodies(t *testing.T) {
	for _, reopens := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			body := &opaque{Reader: strings.NewReader("x")}
			req := requestOf(t, t.Context(), http.MethodPut, body)
			if reopens {
				req.GetBody = func() (io.ReadCloser, error) { return body, nil }
			}
			tr := over(t, func(*http.Request) (*http.Response, error) { panic("boom") }, quick())
			require.Panics(t, func() { _, _ = tr.RoundTrip(req) })
			require.Equal(t, 1, body.closed())
		})
	}
	synctest.Test(t, func(t *testing.T) {
		answer := &opaque{Reader: strings.NewReader("x")}
		tr := over(t, func(*http.Request) (*http.Response, error) {
			resp := response(200, nil)
			resp.Body = answer
			return resp, nil
		}, quick(), httpmw.WithClassifier(func(*http.Response, error, call.Result) call.Result { panic("boom") }))
		require.Panics(t, func() { _, _ = tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil)) })
		require.Equal(t, 1, answer.closed())
	})
}

// B1: a hook that panics on a goroutine that is not the caller's is recovered and
// reported.
func TestB1_AHookPanicsBesideTheCaller(t *testing.T) {
	for _, handled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Retry = retry.Off()
			p.Breaker.Hooks.ProbeEnded = func(breaker.ProbeEnd) { panic("boom") }
			var reported []any
			var opts []httpmw.Option
			if handled {
				opts = append(opts, httpmw.WithPanicHandler(func(method string, value any, stack []byte) {
					reported = append(reported, method, value)
					require.NotEmpty(t, stack)
				}))
			}
			down := true
			stop := make(chan struct{})
			tr := over(t, func(*http.Request) (*http.Response, error) {
				if down {
					return nil, errors.New("down")
				}
				return response(200, waits(stop)), nil
			}, p, opts...)
			for range 5 {
				_, err := tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
				require.Error(t, err)
			}
			down = false
			time.Sleep(time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := tr.RoundTrip(requestOf(t, ctx, http.MethodGet, nil)) // a probe
			require.NoError(t, err)
			cancel() // and nobody reads its body
			synctest.Wait()
			close(stop)
			if handled {
				require.Equal(t, []any{"GET", "boom"}, reported)
				require.NoError(t, resp.Body.Close())
			} else {
				require.PanicsWithValue(t, "boom", func() { _ = resp.Body.Close() })
			}
		})
	}
}

// K2: a permit comes back with the caller's context, also from a Read that does
// not heed it.
func TestK2_AReadThatIgnoresTheContextHoldsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		tr := over(t, func(*http.Request) (*http.Response, error) { return response(200, waits(stop)), nil }, narrow())
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := tr.RoundTrip(requestOf(t, ctx, http.MethodGet, nil))
		require.NoError(t, err)
		go func() { _, _ = io.ReadAll(resp.Body) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		again, err := tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		close(stop)
		require.NoError(t, again.Body.Close())
	})
}

// T3: neither an upload that is still read nor a slow failed body takes the call
// beyond Total, and what came of that body is there at once.
func TestT3_NothingTakesTheCallBeyondTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		p := quick()
		p.Timeout = &timeout.Limits{Total: 100 * time.Millisecond}
		tr := over(t, func(r *http.Request) (*http.Response, error) {
			go func() { _, _ = r.Body.Read(make([]byte, 10)); r.Body.Close() }() // answered early
			time.Sleep(time.Millisecond)
			return response(503, strings.NewReader("down")), nil
		}, p)
		begin := time.Now()
		resp, err := tr.RoundTrip(requestOf(t, t.Context(), http.MethodPut, waits(stop)))
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begin), 100*time.Millisecond)
		require.Equal(t, "down", readAll(t, resp.Body))
		require.ErrorContains(t, httpmw.Stopped(resp), "still being read")
		close(stop)
	})
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Timeout = &timeout.Limits{Total: 50 * time.Millisecond}
		tr := over(t, func(*http.Request) (*http.Response, error) {
			sent := false
			return response(503, readerFunc(func(b []byte) (int, error) {
				if sent {
					time.Sleep(time.Hour)
					return 0, io.EOF
				}
				sent = true
				return copy(b, "down"), nil
			})), nil
		}, p)
		begin := time.Now()
		resp, err := tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begin), 50*time.Millisecond)
		first := make([]byte, 10)
		n, err := resp.Body.Read(first)
		require.NoError(t, err)
		require.Equal(t, "down", string(first[:n]))
		require.LessOrEqual(t, time.Since(begin), 50*time.Millisecond)
		require.Empty(t, readAll(t, resp.Body))
	})
}

// A caller who cancels in the old way is a caller who cancels.
func TestTheOldCancelIsUnderstood(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Timeout = timeout.Off()
		s := start(t, proto, p, answers(silent))
		for i := range 6 {
			cancel := make(chan struct{})
			time.AfterFunc(10*time.Millisecond, func() { close(cancel) })
			req := s.request(t, t.Context(), http.MethodGet, "/", "")
			req.Cancel = cancel //lint:ignore SA1019 that is the point
			_, err := s.transport.RoundTrip(req)
			require.Error(t, err)
			require.NotErrorIs(t, err, breaker.ErrOpen)
			require.Len(t, s.script.hits(), i+1)
		}
	})
}

// R2: another kit's refusal below is a refusal here: never repeated, not booked.
func TestR2_ARefusalFurtherInIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hits := 0
		tr := over(t, func(*http.Request) (*http.Response, error) { hits++; return nil, breaker.ErrOpen }, quick())
		for range 10 {
			_, err := tr.RoundTrip(requestOf(t, t.Context(), http.MethodGet, nil))
			require.Equal(t, breaker.ErrOpen, err)
		}
		require.Equal(t, 10, hits)
	})
}

// K3: a wait for a permit that the attempt's limit cut short is a deadline's, and
// no caller's cancellation.
func TestK3_AWaitCutShortIsADeadline(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 1, Queue: 1}
		s := start(t, proto, p, answers(status(200, "held")))
		held, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		_, _, err = s.get(t, "/")
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.NotErrorIs(t, err, context.Canceled)
		require.NoError(t, held.Body.Close())
	})
}

// An answer without a body holds nothing, with a limit on its first byte too.
func TestAnAnswerWithoutABodyHoldsNothing(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := narrow()
		p.Timeout = &timeout.Limits{FirstMessage: time.Second}
		s := start(t, proto, p, answers(status(200, "")))
		for range 3 {
			_, err := s.transport.RoundTrip(s.request(t, t.Context(), http.MethodHead, "/", ""))
			require.NoError(t, err)
		}
	})
}

// D038: over HTTP/2 a request may have arrived before anybody here says that it
// was written. Over a real socket, with limits so short that they fall in between.
func TestD038_NoPostArrivesTwiceOverHTTP2(t *testing.T) {
	var mu sync.Mutex
	hits := map[string]int{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		hits[r.URL.Path]++
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	base := server.Client().Transport
	warm, err := base.RoundTrip(requestTo(t, http.MethodGet, server.URL+"/warm"))
	require.NoError(t, err)
	require.NoError(t, warm.Body.Close())

	k, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Breaker: breaker.Off(),
		Retry:   &retry.Policy{Backoff: retry.NoWait(), Budget: retry.NoBudget()},
		Timeout: &timeout.Limits{Attempt: 60 * time.Microsecond},
	}})
	require.NoError(t, err)
	tr := httpmw.NewTransport(base, k)
	late := 0
	for n := range 1500 {
		resp, err := tr.RoundTrip(requestTo(t, http.MethodPost, fmt.Sprintf("%s/%d", server.URL, n)))
		if err == nil {
			resp.Body.Close()
		} else if errors.Is(err, timeout.ErrExceeded) {
			late++
		}
	}
	server.Close() // waits for what still runs
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d calls of 1500 exceeded the limit, %d arrived", late, len(hits)-1)
	require.Greater(t, late+len(hits)-1, 1500, "some had arrived when their limit passed")
	for path, n := range hits {
		require.Equal(t, 1, n, path)
	}
}

func requestTo(t *testing.T, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	require.NoError(t, err)
	return req
}
