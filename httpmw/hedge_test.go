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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

const ms = time.Millisecond

// hedging is quick with a hedge after 10 ms.
func hedging() holdfast.Policy {
	p := quick()
	p.Retry.Hedge = retry.Hedge{Delay: 10 * ms}
	p.Retry.Budget = retry.NoBudget()
	return p
}

// later answers after d, unless the client has left.
func later(d time.Duration, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			then(w, r)
		case <-r.Context().Done():
		}
	}
}

// gone counts the requests that are being answered.
type gone struct {
	http.Handler
	running atomic.Int32
}

func (g *gone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.running.Add(1)
	defer g.running.Add(-1)
	g.Handler.ServeHTTP(w, r)
}

// D082, R10: the first acceptable answer wins, errors are held back while others
// run, and if all fail the first attempt's answer comes back, from its first byte.
func TestD082_TheFirstAcceptableAnswerWins(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []http.HandlerFunc
		hits  int
		code  int
		body  string
		took  time.Duration
	}{
		"the first is quick":                 {[]http.HandlerFunc{later(5*ms, status(200, "one"))}, 1, 200, "one", 5 * ms},
		"the hedge wins":                     {[]http.HandlerFunc{silent, later(5*ms, status(200, "two"))}, 2, 200, "two", 15 * ms},
		"the first wins after all":           {[]http.HandlerFunc{later(50*ms, status(200, "one")), silent}, 2, 200, "one", 50 * ms},
		"the first fails, the hedge is good": {[]http.HandlerFunc{later(15*ms, status(503, "one")), later(50*ms, status(200, "two"))}, 2, 200, "two", 60 * ms},
		"both fail":                          {[]http.HandlerFunc{later(15*ms, status(503, "one")), later(50*ms, status(500, "two"))}, 2, 503, "one", 60 * ms},
		"both fail, the hedge first":         {[]http.HandlerFunc{later(50*ms, status(503, "one")), later(5*ms, status(500, "two"))}, 2, 503, "one", 50 * ms},
		"a client fault is an answer":        {[]http.HandlerFunc{silent, later(5*ms, status(404, "two"))}, 2, 404, "two", 15 * ms},
		"what forbids a repeat is not":       {[]http.HandlerFunc{later(50*ms, status(200, "one")), later(5*ms, status(501, "two"))}, 2, 200, "one", 50 * ms},
		"a failure before the delay is repeated, and hedged again": {
			[]http.HandlerFunc{later(5*ms, status(503, "one")), silent, status(200, "three")}, 3, 200, "three", 25 * ms,
		},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				s := start(t, proto, hedging(), answers(tc.steps...))
				begin := time.Now()
				code, body, err := s.get(t, "/")
				require.NoError(t, err)
				require.Equal(t, tc.took, time.Since(begin))
				require.Equal(t, tc.code, code)
				require.Equal(t, tc.body, body)
				require.Len(t, s.script.hits(), tc.hits)
			})
		})
	}
	overEach(t, func(t *testing.T, proto memnet.Proto) { // the first one's limit, if all are silent
		s := start(t, proto, hedging(), answers(silent))
		begin := time.Now()
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, 110*ms, time.Since(begin))
		require.Len(t, s.script.hits(), 2)
	})
}

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

// R10: losers are neutral; those that had failed by themselves are failures.
func TestR10_LosersAreNeutral(t *testing.T) {
	for name, tc := range map[string]struct {
		first  http.HandlerFunc
		opened bool
	}{
		"silent":     {silent, false},
		"has failed": {later(12*ms, status(503, "")), true},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				p := hedging()
				p.Breaker = &breaker.Config{Failures: 3, Window: breaker.Window{Calls: 20}}
				s := start(t, proto, p, answers(tc.first, later(5*ms, status(200, "")), tc.first, later(5*ms, status(200, "")), tc.first, later(5*ms, status(200, ""))))
				for range 3 {
					code, _, err := s.get(t, "/")
					require.NoError(t, err)
					require.Equal(t, 200, code)
				}
				_, _, err := s.get(t, "/")
				require.Equal(t, tc.opened, errors.Is(err, breaker.ErrOpen), "%v", err)
			})
		})
	}
}

// D083: a half-open breaker's probe is neither hedged nor repeated.
func TestD083_AProbeIsNotHedged(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		down := status(503, "")
		s := start(t, proto, hedging(), answers(down, down, down, down, down, later(90*ms, down)))
		for range 2 {
			_, _, err := s.get(t, "/")
			require.NoError(t, err)
		}
		require.Len(t, s.script.hits(), 5)
		time.Sleep(time.Second)
		code, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, 503, code)
		require.Len(t, s.script.hits(), 6)
		_, _, err = s.get(t, "/")
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// D084: hedges draw on the budget.
func TestD084_HedgesDrawOnTheBudget(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := hedging()
		p.Retry.Budget = retry.Budget{Share: 0.1, PerSecond: 1e-6, Initial: 10}
		p.Breaker = breaker.Off()
		s := start(t, proto, p, answers(later(90*ms, status(200, ""))))
		for range 300 {
			_, _, err := s.get(t, "/")
			require.NoError(t, err)
		}
		require.LessOrEqual(t, len(s.script.hits()), 300+30+10)
		require.GreaterOrEqual(t, len(s.script.hits()), 300+30)
	})
}

// B1: a panic or a Goexit in an attempt on a goroutine of its own goes on where
// the call was made, and gives everything back.
func TestB1_APanicBesideAHedge(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("a bug") }, "Goexit": runtime.Goexit} {
		for _, which := range []int{1, 2} {
			t.Run(fmt.Sprint(name, " in attempt ", which), func(t *testing.T) {
				overEach(t, func(t *testing.T, proto memnet.Proto) {
					p := hedging()
					p.Bulkhead = &bulkhead.Config{Limit: 2}
					p.Breaker = &breaker.Config{Consecutive: 2}
					s := start(t, proto, p, answers(later(30*ms, status(200, "x"))))
					n, k := atomic.Int32{}, newKit(t, p)
					transport := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
						if int(n.Add(1)) == which {
							time.Sleep(15 * ms)
							end()
						}
						return s.Transport.RoundTrip(req)
					}), k)
					for range 2 {
						n.Store(0)
						over := make(chan bool)
						go func() {
							returned := false
							defer func() {
								_ = recover()
								over <- returned
							}()
							_, _ = transport.RoundTrip(s.request(t, t.Context(), http.MethodGet, "/", ""))
							returned = true
						}()
						require.False(t, <-over)
						synctest.Wait()
						for _, b := range k.Bulkheads() {
							require.Zero(t, b.InUse())
						}
					}
					n.Store(2)
					_, err := transport.RoundTrip(s.request(t, t.Context(), http.MethodGet, "/", ""))
					require.ErrorIs(t, err, breaker.ErrOpen, "two failures were booked")
				})
			})
		}
	}
}

// FirstMessage holds in a race too: an answer counts with its first byte.
func TestT4_TheFirstByteDecidesTheRace(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := hedging()
		p.Timeout = &timeout.Limits{FirstMessage: 80 * ms}
		stuck := func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		s := start(t, proto, p, answers(stuck, later(20*ms, status(200, "two"))))
		begin := time.Now()
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, "two", body)
		require.Equal(t, 30*ms, time.Since(begin))
	})
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

// K2: a failure that is held back gives up its permit.
func TestK2_AFailureHeldBackHoldsNoPermit(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := hedging()
		p.Bulkhead = &bulkhead.Config{Limit: 2}
		s := start(t, proto, p, answers(later(12*ms, status(503, "one")), later(60*ms, status(503, "two")), status(200, "three")))
		over := make(chan struct{})
		time.AfterFunc(30*ms, func() {
			defer close(over)
			_, body, err := s.get(t, "/")
			require.NoError(t, err)
			require.Equal(t, "three", body)
		})
		code, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, 503, code)
		require.Equal(t, "one", body)
		<-over
	})
}

// B1: a loser that panics when it is cancelled panics in the call; the answer that
// has won is let go of.
func TestB1_ALoserThatPanics(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := hedging()
		p.Bulkhead = &bulkhead.Config{Limit: 2}
		p.Breaker = breaker.Off()
		s := start(t, proto, p, answers(later(20*ms, status(200, "x"))))
		n := atomic.Int32{}
		transport := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			if n.Add(1)%2 == 0 {
				<-req.Context().Done()
				panic("a bug")
			}
			return s.Transport.RoundTrip(req)
		}), newKit(t, p))
		for range 3 {
			require.PanicsWithValue(t, "a bug", func() {
				_, _ = transport.RoundTrip(s.request(t, context.WithoutCancel(t.Context()), http.MethodGet, "/", ""))
			})
		}
		require.EqualValues(t, 6, n.Load())
	})
}
