package httpmw_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

func staleAnswer(_ context.Context, f fallback.Failure) (any, error) {
	if f.Info.Safety != call.ReadOnly {
		return nil, errors.New("asked for a write")
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("stale"))}, nil
}

// narrow is a policy with one permit and a silent queue.
func narrow() holdfast.Policy {
	p := quick()
	p.Bulkhead = &bulkhead.Config{Limit: 1}
	return p
}

// dripping answers with its headers and then one piece each pause.
func dripping(pieces int, pause time.Duration, piece string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		for range pieces {
			w.(http.Flusher).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			_, _ = io.WriteString(w, piece)
		}
	}
}

// H3, T1, T3: the attempt's limit ends with the headers, its context with the
// body (D050).
func TestD050_TheLimitDoesNotHitTheBody(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		piece := strings.Repeat("x", 50<<10)
		s := start(t, proto, quick(), answers(dripping(20, 30*time.Millisecond, piece)))
		begin := time.Now()
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Len(t, body, 20*len(piece))
		require.GreaterOrEqual(t, time.Since(begin), 600*time.Millisecond)
	})
}

// H3, K2: permit and ticket live to the end of the body, whichever end comes
// first, and come back once (D056).
func TestK2_ThePermitLivesAsLongAsTheBody(t *testing.T) {
	ends := map[string]func(t *testing.T, resp *http.Response, cancel context.CancelFunc){
		"EOF": func(t *testing.T, resp *http.Response, _ context.CancelFunc) {
			_, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
		},
		"an early Close": func(t *testing.T, resp *http.Response, _ context.CancelFunc) {
			require.NoError(t, resp.Body.Close())
		},
		"three Closes at once": func(t *testing.T, resp *http.Response, _ context.CancelFunc) {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { _ = resp.Body.Close() })
			}
			wg.Wait()
		},
		"the caller's context, nobody reading": func(_ *testing.T, _ *http.Response, cancel context.CancelFunc) { cancel() },
		"the caller's context, in a Read": func(t *testing.T, resp *http.Response, cancel context.CancelFunc) {
			time.AfterFunc(time.Millisecond, cancel)
			_, err := io.ReadAll(resp.Body)
			require.ErrorIs(t, err, context.Canceled)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				s := start(t, proto, narrow(), answers(dripping(3, 10*time.Millisecond, "piece")))
				for range 10 {
					ctx, cancel := context.WithCancel(t.Context())
					resp, err := s.client.Do(s.request(t, ctx, http.MethodGet, "/", ""))
					require.NoError(t, err)
					_, _, err = s.get(t, "/")
					require.ErrorIs(t, err, bulkhead.ErrFull, "the permit is out")
					end(t, resp, cancel)
					synctest.Wait()
					cancel()
				}
				_, body, err := s.get(t, "/")
				require.NoError(t, err, "every permit is back, and none of the ends was a failure")
				require.Equal(t, "piecepiecepiece", body)
				_, _, err = s.get(t, "/")
				require.NoError(t, err)
			})
		})
	}
}

// H3: a status that says failure is booked at the headers, a good one when its
// body has come whole: a body that breaks is a failure.
func TestH3_ABodyThatBreaksIsAFailure(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := narrow()
		p.Retry = retry.Off()
		s := start(t, proto, p, answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "some")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}))
		for range 5 {
			_, body, err := s.get(t, "/")
			require.Error(t, err)
			require.Equal(t, "some", body)
		}
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Retry = retry.Off()
		s := start(t, proto, p, answers(status(500, "not read")))
		for range 5 {
			resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
			require.NoError(t, err)
			defer resp.Body.Close()
		}
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, breaker.ErrOpen, "nobody has closed a body yet")
	})
}

// A silent body under the caller's deadline alone is the dependency's failure.
func TestABodyThatFallsSilentIsAFailure(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := narrow()
		p.Retry = retry.Off()
		s := start(t, proto, p, answers(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "some")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}))
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, body, err := s.do(t, s.request(t, ctx, http.MethodGet, "/", ""))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, "some", body)
			cancel()
		}
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// D035, H3: bodies that are thrown away give their connection back before the
// next attempt.
func TestD035_DiscardedBodiesFreeTheirConnection(t *testing.T) {
	for name, size := range map[string]int{"empty": 0, "small": 4 << 10, "just the limit": 64 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := strings.Repeat("e", size)
				s := start(t, memnet.HTTP1, narrow(), answers(status(503, body), status(503, body), status(200, "fine")))
				s.Transport.MaxConnsPerHost = 1
				_, got, err := s.get(t, "/")
				require.NoError(t, err)
				require.Equal(t, "fine", got)
				require.Len(t, s.script.hits(), 3)
				require.Equal(t, 1, s.Wire.Accepted())
			})
		})
	}
}

// T4 for HTTP: with FirstMessage set the response is returned with its first
// byte, and an attempt that stays silent behind its headers is repeated.
func TestT4_AnAttemptWithoutAFirstByteIsRepeated(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := narrow()
		p.Timeout = &timeout.Limits{Attempt: 50 * time.Millisecond, FirstMessage: 100 * time.Millisecond}
		s := start(t, proto, p, answers(
			dripping(1, time.Second, "never"),
			dripping(3, 80*time.Millisecond, "tok"),
		))
		begin := time.Now()
		resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		require.Equal(t, 190*time.Millisecond, time.Since(begin), "limit, wait, first byte")
		require.Equal(t, "toktoktok", readAll(t, resp.Body))
		require.Len(t, s.script.hits(), 2)
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond}
		p.Retry = retry.Off()
		s := start(t, proto, p, answers(dripping(1, time.Second, "never")))
		for range 5 {
			_, _, err := s.get(t, "/")
			require.ErrorIs(t, err, timeout.ErrExceeded)
			require.ErrorContains(t, err, "FirstMessage limit of 100ms exceeded")
		}
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond}
		s := start(t, proto, p, answers(status(204, ""), status(200, "")))
		for range 2 {
			_, body, err := s.get(t, "/")
			require.NoError(t, err, "an empty body has arrived whole")
			require.Empty(t, body)
		}
	})
}

func (selfish) Close() error { return nil }

// B1: a panic in the base or in a classifier is a failure, goes on, and leaves no
// permit behind.
func TestB1_PanicsInTheBaseAndTheClassifier(t *testing.T) {
	for name, parts := range map[string]struct {
		base       roundTrip
		classifier func(*http.Response, error, call.Result) call.Result
	}{
		"base": {func(*http.Request) (*http.Response, error) { panic("boom") }, nil},
		"classifier": {
			func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("x"))}, nil
			},
			func(*http.Response, error, call.Result) call.Result { panic("boom") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := narrow()
				p.Retry = retry.Off()
				k := newKit(t, p)
				var opts []httpmw.Option
				if parts.classifier != nil {
					opts = append(opts, httpmw.WithClassifier(parts.classifier))
				}
				tr := httpmw.NewTransport(parts.base, k, opts...)
				req, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
				require.NoError(t, err)
				for range 5 {
					require.PanicsWithValue(t, "boom", func() { _, _ = tr.RoundTrip(req) })
				}
				_, err = tr.RoundTrip(req)
				require.ErrorIs(t, err, breaker.ErrOpen)
			})
		})
	}
}

// H1: a fallback's answer is a response to the request; its own failure is an
// error in which both are found.
func TestF5_AFallbackAnswersARead(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := narrow()
		p.Fallback = &fallback.Policy{Answer: staleAnswer}
		s := start(t, proto, p, answers(status(503, "down")))
		resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		require.Equal(t, "stale", readAll(t, resp.Body))
		require.NotNil(t, resp.Request)

		code, body, err := s.do(t, s.request(t, t.Context(), http.MethodPost, "/", "x")) // D060
		require.NoError(t, err)
		require.Equal(t, 503, code)
		require.Equal(t, "down", body)
		synctest.Wait()
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) { // D063
		p := quick()
		p.Fallback = &fallback.Policy{Answer: staleAnswer}
		s := start(t, proto, p, answers(status(404, "no such item")))
		code, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, 404, code)
		require.Equal(t, "no such item", body)
	})
	synctest.Test(t, func(t *testing.T) {
		second := errors.New("no copy")
		p := quick()
		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return nil, second }}
		s := start(t, memnet.HTTP1, p, answers(status(200, "")))
		s.Wire.Refuse(true)
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, second)
		var op *net.OpError
		require.ErrorAs(t, err, &op)

		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return "text", nil }}
		s = start(t, memnet.HTTP1, p, answers(status(500, "the answer")))
		resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err, "a response stands, and says why it was not replaced")
		require.Equal(t, "the answer", readAll(t, resp.Body))
		require.ErrorContains(t, httpmw.Stopped(resp), "returned a string, not a *http.Response")

		p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return nil, second }}
		s = start(t, memnet.HTTP1, p, answers(status(500, "the answer")))
		resp, err = s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		require.Equal(t, 500, resp.StatusCode)
		require.ErrorIs(t, httpmw.Stopped(resp), second)
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
	})
}

// H1: an upgraded connection keeps its Write, lives beyond the limit and gives
// its permit back at Close.
func TestH1_AnUpgradedConnectionLivesToItsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, memnet.HTTP1, narrow(), answers(func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			line, _ := rw.ReadString('\n')
			fmt.Fprintf(rw, "echo %s", line)
			_ = rw.Flush()
		}))
		req := s.request(t, t.Context(), http.MethodGet, "/", "")
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := s.client.Do(req)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
		w, ok := resp.Body.(io.Writer)
		require.True(t, ok)
		time.Sleep(time.Minute)
		_, err = io.WriteString(w, "hello\n")
		require.NoError(t, err)
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "echo hello\n", line)
		_, err = resp.Body.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		_, _, err = s.get(t, "/")
		require.ErrorIs(t, err, bulkhead.ErrFull, "EOF of one half is not the end")
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
		resp, err = s.client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	})
}
