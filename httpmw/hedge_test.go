package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
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
