package httpmw_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// D081: the winner's body lives until it is closed; losers are cancelled at once
// and leave nothing. Here both answer at the very same moment.
func TestD081_TheWinnersBodyLives(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 32<<10)
	for _, delay := range []time.Duration{20 * ms, 10 * ms} {
		overEach(t, func(t *testing.T, proto memnet.Proto) {
			p := hedging()
			p.Bulkhead = &bulkhead.Config{Limit: 2} // a permit that is lost would show
			p.Retry.Hedge.Delay = delay
			var hits atomic.Int32
			g := &gone{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				d := 20 * ms
				if hits.Add(1)%2 == 0 {
					d -= delay // a hedge
				}
				later(d, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) })(w, r)
			})}
			k := newKit(t, p)
			server := memnet.Start(t, proto, g)
			client := &http.Client{Transport: httpmw.NewTransport(server.Transport, k)}
			for range 30 {
				resp, err := client.Get(server.URL)
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got), "%d bytes", len(got))
				require.NoError(t, resp.Body.Close())
				time.Sleep(50 * ms)
				synctest.Wait()
				require.Zero(t, g.running.Load(), "the server has seen the loser's cancel")
			}
			before := runtime.NumGoroutine()
			for range 20 {
				resp, err := client.Get(server.URL)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
			server.Transport.CloseIdleConnections()
			time.Sleep(time.Second)
			synctest.Wait()
			require.LessOrEqual(t, runtime.NumGoroutine(), before+1, "the runtime may have started one of its own")
		})
	}
}

// R10: each attempt sends the whole body, if GetBody can make another; else there
// is no hedge.
func TestR10_EachAttemptSendsItsOwnBody(t *testing.T) {
	text := strings.Repeat("a lamp, ", 8<<10)
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, hedging(), answers(silent, status(200, "two")),
			httpmw.WithAttemptNumberHeader("X-Before"),
			httpmw.WithAttemptHook(func(req *http.Request, attempt int) error {
				req.Header.Set("X-Sig", fmt.Sprint(attempt))
				return nil
			}))
		req := s.request(t, t.Context(), http.MethodPut, "/", text)
		req.Header.Set("Idempotency-Key", "mine")
		_, body, err := s.do(t, req)
		require.NoError(t, err)
		require.Equal(t, "two", body)
		hits := s.script.hits()
		require.Len(t, hits, 2)
		for i, h := range hits {
			require.Equal(t, text, h.body)
			require.EqualValues(t, len(text), h.length)
			require.Equal(t, "mine", h.header.Get("Idempotency-Key"), "D037: a hedge pair has one key")
			require.Equal(t, []string{"", "1"}[i], h.header.Get("X-Before"))
			require.Equal(t, []string{fmt.Sprint(i + 1)}, h.header["X-Sig"])
		}
		require.Equal(t, http.Header{"Idempotency-Key": {"mine"}}, req.Header, "the caller's request is not changed")
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) { // no GetBody
		s := start(t, proto, hedging(), answers(later(50*ms, status(200, "one"))))
		body := &opaque{Reader: strings.NewReader(text)}
		req := s.request(t, t.Context(), http.MethodPut, "/", "")
		req.Body = body
		_, got, err := s.do(t, req)
		require.NoError(t, err)
		require.Equal(t, "one", got)
		require.Len(t, s.script.hits(), 1)
		synctest.Wait() // the transport may close it late
		require.Equal(t, 1, body.closed())
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) { // a GetBody that fails harms nothing
		s := start(t, proto, hedging(), answers(later(50*ms, status(200, "one"))))
		req := s.request(t, t.Context(), http.MethodPut, "/", text)
		req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("the file is gone") }
		_, got, err := s.do(t, req)
		require.NoError(t, err)
		require.Equal(t, "one", got)
		require.Len(t, s.script.hits(), 1)
	})
}

// A loser's body is read no more once the call has returned, and each is closed.
// (The winner's may be: its server answered early, and its transport reads on.)
func TestD053_NothingReadsABodyAfterTheCall(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		var hits atomic.Int32
		k := newKit(t, hedging())
		server := memnet.Start(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hits.Add(1) == 1 {
				time.Sleep(100 * ms) // and leaves the body unread
				return
			}
			status(200, "two")(w, r)
		}))
		transport := httpmw.NewTransport(server.Transport, k)
		var mu sync.Mutex
		opened, closed, over, late := 0, 0, false, 0
		source := func() (io.ReadCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			opened++
			first := opened == 1
			return &watched{read: func() {
				mu.Lock()
				defer mu.Unlock()
				if over && first {
					late++
				}
			}, close: func() {
				mu.Lock()
				defer mu.Unlock()
				closed++
			}}, nil
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, nil)
		require.NoError(t, err)
		req.GetBody = source
		req.Body, _ = source()
		req.ContentLength = 64 << 20
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		mu.Lock()
		over = true
		mu.Unlock()
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		time.Sleep(time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.GreaterOrEqual(t, opened, 2)
		require.Equal(t, opened, closed)
		require.Zero(t, late)
	})
}

// D053, H2: nor can a transport read on that still holds a loser's body, of more of the
// caller's memory than is copied.
func TestD053_ALosersBodyIsShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n, late atomic.Int32
		over := make(chan struct{})
		transport := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			if n.Add(1) == 1 {
				go func() {
					defer req.Body.Close()
					<-over
					if got, err := req.Body.Read(make([]byte, 8)); got > 0 || err == nil {
						late.Add(1)
					}
				}()
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return tracked(200, new(atomic.Int32)), req.Body.Close()
		}), newKit(t, hedging()))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://api.example.com/", bytes.NewReader(make([]byte, 64<<10)))
		require.NoError(t, err)
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		close(over)
		synctest.Wait()
		require.Zero(t, late.Load())
		require.NoError(t, resp.Body.Close())
	})
}

// watched is an endless body that tells of every Read and of its first Close.
type watched struct {
	read, close func()
	once        sync.Once
}

func (w *watched) Read(p []byte) (int, error) {
	w.read()
	return len(p), nil
}

func (w *watched) Close() error {
	w.once.Do(w.close)
	return nil
}

// A body of the winner's that is cut off by the caller ends as ever.
func TestTheCallersEndReachesTheWinnersBody(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := hedging()
		p.Bulkhead = &bulkhead.Config{Limit: 2}
		s := start(t, proto, p, answers(silent, dripping(1000, 10*ms, ".")))
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := s.transport.RoundTrip(s.request(t, ctx, http.MethodGet, "/", ""))
			require.NoError(t, err)
			time.AfterFunc(200*ms, cancel)
			_, err = io.ReadAll(resp.Body)
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, resp.Body.Close())
			synctest.Wait()
		}
	})
}

// T1: the context of the winner's attempt ends with its body, a loser's at once.
func TestT1_NoContextOfARaceIsLeft(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, hedging(), answers(silent, status(200, "two"), silent, status(204, "")))
		var mu sync.Mutex
		var made []context.Context
		transport := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			made = append(made, req.Context())
			mu.Unlock()
			return s.Transport.RoundTrip(req)
		}), newKit(t, hedging()))
		for i := range 2 {
			resp, err := transport.RoundTrip(s.request(t, t.Context(), http.MethodGet, "/", ""))
			require.NoError(t, err)
			require.Len(t, made, 2*i+2)
			require.Error(t, made[2*i].Err())
			if i == 0 {
				require.NoError(t, made[1].Err())
			}
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Error(t, made[2*i+1].Err())
			require.NoError(t, resp.Body.Close())
		}
	})
}

// tracked is an answer whose body tells whether it was closed.
func tracked(code int, closed *atomic.Int32) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, ContentLength: 4, Body: &watched{read: func() {}, close: func() { closed.Add(1) }}}
}

// R10: what a loser brings is closed, also if its transport takes no notice of its
// cancellation, and so is an answer that was held back and not needed.
func TestR10_TheAnswersOfLosersAreClosed(t *testing.T) {
	for name, first := range map[string]int{"a good answer, come late": 200, "a failure, held back": 503} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := hedging()
				p.Bulkhead = &bulkhead.Config{Limit: 2}
				var closed, n atomic.Int32
				transport := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
					if n.Add(1)%2 == 1 {
						time.Sleep(map[int]time.Duration{200: 40 * ms, 503: 15 * ms}[first])
						return tracked(first, &closed), nil
					}
					time.Sleep(20 * ms)
					return tracked(200, new(atomic.Int32)), nil
				}), newKit(t, p))
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.example.com/", nil)
				require.NoError(t, err)
				for range 3 {
					closed.Store(0)
					resp, err := transport.RoundTrip(req)
					require.NoError(t, err)
					require.Equal(t, 200, resp.StatusCode)
					time.Sleep(time.Second) // a failure is drained for a while
					require.EqualValues(t, 1, closed.Load())
					require.NoError(t, resp.Body.Close())
				}
				require.EqualValues(t, 6, n.Load())
			})
		})
	}
}
