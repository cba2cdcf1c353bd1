package httpmw_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memnet/memframes"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// fragile is quick with one attempt a call.
func fragile() holdfast.Policy {
	p := quick()
	p.Retry = retry.Off()
	return p
}

// outage makes calls until the breaker of p's target is open, and waits for the
// end of its cooldown.
func outage(t *testing.T, s *setup) {
	t.Helper()
	for range 5 {
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
	}
	_, _, err := s.get(t, "/")
	require.ErrorIs(t, err, breaker.ErrOpen)
	time.Sleep(time.Second)
}

// D004: a probe that ends in a client's fault has found a dependency that answers;
// one whose caller leaves says nothing and frees its slot.
func TestD004_AProbeAlwaysEnds(t *testing.T) {
	down := slices.Repeat([]http.HandlerFunc{status(503, "")}, 5)
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		k := newKit(t, fragile())
		s := startKit(t, proto, k, answers(append(down, status(404, "no such item"), status(200, ""))...))
		outage(t, s)
		for _, want := range []int{404, 200, 200, 200} {
			code, _, err := s.get(t, "/")
			require.NoError(t, err)
			require.Equal(t, want, code)
			for _, b := range k.Breakers() {
				require.Equal(t, breaker.Closed, b.State())
			}
		}
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, fragile(), answers(append(down, silent, silent, silent, status(200, ""))...))
		outage(t, s)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			time.AfterFunc(5*time.Millisecond, cancel)
			_, _, err := s.do(t, s.request(t, ctx, http.MethodGet, "/", ""))
			require.ErrorIs(t, err, context.Canceled)
		}
		for range 3 {
			_, _, err := s.get(t, "/")
			require.NoError(t, err)
		}
	})
}

// D016: who left is asked of the caller's context, not of the error.
func TestD016_AnErrorOfTextOnlyIsTheCallersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, quick())
		hits := 0
		client := &http.Client{Transport: httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			hits++
			<-req.Context().Done()
			return nil, errors.New("canceled")
		}), k)}
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
			require.NoError(t, err)
			_, err = client.Do(req)
			require.Error(t, err)
			require.NotErrorIs(t, err, breaker.ErrOpen)
		}
		require.Equal(t, 200, hits)
	})
}

// D021: by default 429 is back-pressure and says nothing against the dependency;
// with the option it counts.
func TestD021_ThrottlingIsNoFailureUnlessItIsCounted(t *testing.T) {
	throttled := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(throttled))
		began := time.Now()
		for range 50 {
			code, _, err := s.get(t, "/")
			require.NoError(t, err)
			require.Equal(t, 429, code)
		}
		repeats := len(s.script.hits()) - 50
		require.NotZero(t, repeats)
		require.GreaterOrEqual(t, time.Since(began), time.Duration(repeats)*time.Second, "each wait is as long as asked for")
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Breaker.CountThrottled = true
		s := start(t, proto, p, answers(throttled))
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Len(t, s.script.hits(), 3, "one call's attempts do not reach the minimum alone")
		resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		require.Equal(t, 429, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.ErrorIs(t, httpmw.Stopped(resp), breaker.ErrOpen)
		require.Len(t, s.script.hits(), 5)
	})
}

// D031: no attempt begins once the caller's time is over.
func TestD031_NoAttemptBeginsAfterTheEnd(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Breaker = breaker.Off()
		p.Timeout = &timeout.Limits{Attempt: 30 * time.Millisecond}
		p.Retry = &retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: time.Millisecond, Factor: 1, Jitter: retry.NoJitter}}
		s := start(t, proto, p, answers(silent))
		sent := 0
		transport, err := httpmw.New(counting(s.Transport, &sent), newKit(t, p))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = (&http.Client{Transport: transport}).Do(s.request(t, ctx, http.MethodGet, "/", ""))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.Equal(t, 4, sent, "at 0, 31, 62 and 93 ms")
		require.Len(t, s.script.hits(), sent)
	})
}

// counting counts the requests that reach a base transport.
func counting(base http.RoundTripper, n *int) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		*n++
		return base.RoundTrip(req)
	})
}

// D048: a header that cannot be sent, and a loop of redirects, are not retried.
func TestD048_FaultsOfTheRequestAreTriedOnce(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusFound)
		}))
		for range 10 {
			req := s.request(t, t.Context(), http.MethodGet, "/", "")
			req.Header.Set("X-Bad", "a\nb")
			_, _, err := s.do(t, req)
			require.Error(t, err)
			require.NotErrorIs(t, err, breaker.ErrOpen)
		}
		require.Empty(t, s.script.hits())
		for range 10 {
			_, _, err := s.get(t, "/")
			require.ErrorContains(t, err, "stopped after 10 redirects")
		}
		require.Len(t, s.script.hits(), 10*10)
	})
}

// D056: a permit goes back once, however often and from wherever a body is closed.
func TestD056_APermitGoesBackOnce(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: 2}
		p.Retry = retry.Off()
		s := start(t, proto, p, answers(status(200, "body")))
		for range 20 {
			resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
			require.NoError(t, err)
			_ = readAll(t, resp.Body) // EOF, and the first Close
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { _ = resp.Body.Close() })
			}
			wg.Wait()
		}
		var held []*http.Response
		for range 2 {
			resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
			require.NoError(t, err)
			held = append(held, resp)
		}
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, bulkhead.ErrFull, "no more than there were")
		for _, resp := range held {
			require.NoError(t, resp.Body.Close())
		}
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		const limit = 3
		var running, most atomic.Int32
		p := quick()
		p.Bulkhead = &bulkhead.Config{Limit: limit, Queue: 100}
		p.Timeout = &timeout.Limits{Attempt: time.Hour, Total: time.Hour}
		s := start(t, proto, p, answers(func(w http.ResponseWriter, _ *http.Request) {
			now := running.Add(1)
			defer running.Add(-1)
			for {
				seen := most.Load()
				if now <= seen || most.CompareAndSwap(seen, now) {
					break
				}
			}
			time.Sleep(time.Millisecond)
			_, _ = io.WriteString(w, "body")
		}))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 50 {
					if _, _, err := s.get(t, "/"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, limit, most.Load())
	})
}

// D060, D063: an answer that is not the dependency's own is for reads that failed:
// no write gets one, nor does a client's fault.
func TestD063_AFallbackIsForReadsThatFailed(t *testing.T) {
	asked := 0
	p := fragile()
	p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) {
		asked++
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("stale"))}, nil
	}}
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		for _, code := range []int{400, 401, 403, 404, 409, 422} {
			asked = 0
			s := start(t, proto, p, answers(status(code, "details")))
			got, body, err := s.get(t, "/")
			require.NoError(t, err)
			require.Equal(t, code, got)
			require.Equal(t, "details", body)
			require.Zero(t, asked)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			asked = 0
			s := start(t, proto, p, answers(status(503, "down")))
			for range 5 {
				code, body, err := s.do(t, s.request(t, t.Context(), method, "/", "x"))
				require.NoError(t, err)
				require.Equal(t, 503, code)
				require.Equal(t, "down", body)
			}
			_, _, err := s.do(t, s.request(t, t.Context(), method, "/", "x"))
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Zero(t, asked)
			_, body, err := s.get(t, "/")
			require.NoError(t, err)
			require.Equal(t, "stale", body)
			require.Equal(t, 1, asked)
		}
	})
	for name, fail := range map[string]func(*setup){
		"503":     func(*setup) {},
		"refused": func(s *setup) { s.Wire.Refuse(true) },
		"hangs":   func(s *setup) { s.Wire.Silence(true) },
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				asked = 0
				s := start(t, proto, p, answers(status(503, "down")))
				fail(s)
				_, body, err := s.get(t, "/")
				require.NoError(t, err)
				require.Equal(t, "stale", body)
				require.Equal(t, 1, asked)
			})
		})
	}
}

// D069: a body that cannot be opened again is kept while it is sent. What net/http
// cannot repeat then, the kit can, if the request may be.
func TestD069_AStreamThatIsSentAwayComesWholeIfItMayBeRepeated(t *testing.T) {
	for method, hits := range map[string]int{http.MethodPut: 2, http.MethodPost: 1} {
		synctest.Test(t, func(t *testing.T) {
			s, transport := playFrames(t, memframes.Step{Answer: memframes.GoAway(http2.ErrCodeNo), Late: true}, okLate)
			client := &http.Client{Transport: httpmw.NewTransport(transport, newKit(t, quick()))}
			req := newRequest(t, method, "http://"+memnet.Host+"/", io.MultiReader(strings.NewReader("whole")))
			resp, err := client.Do(req)
			require.Len(t, s.Bodies(), hits)
			if hits == 1 {
				require.ErrorContains(t, err, "after Request.Body was written")
				return
			}
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, []string{"whole", "whole"}, s.Bodies())
		})
	}
}
