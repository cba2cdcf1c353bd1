package httpmw_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
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

// R7, H1: the last response comes back whole, whatever stopped the retries, and
// Stopped tells which (D034).
func TestR7_TheLastResponseComesBackWhole(t *testing.T) {
	sizes := map[string]int{"small": 10, "larger than is kept": 200 << 10}
	stops := map[string]struct {
		policy func() holdfast.Policy
		reason error
		hits   int
	}{
		"attempts used up": {quick, nil, 3},
		"budget": {func() holdfast.Policy {
			p := quick()
			p.Retry.Budget = retry.Budget{Initial: 1, PerSecond: 1e-6}
			return p
		}, retry.ErrBudget, 2},
		"time": {func() holdfast.Policy {
			p := quick()
			p.Timeout = &timeout.Limits{Total: 15 * time.Millisecond}
			return p
		}, retry.ErrNoTime, 2},
		"breaker open": {func() holdfast.Policy {
			p := quick()
			p.Breaker.Consecutive = 2
			return p
		}, breaker.ErrOpen, 2},
	}
	for name, stop := range stops {
		for kind, size := range sizes {
			t.Run(name+", "+kind, func(t *testing.T) {
				overEach(t, func(t *testing.T, proto memnet.Proto) {
					body := strings.Repeat("b", size)
					s := start(t, proto, stop.policy(), answers(status(503, body)))
					resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
					require.NoError(t, err)
					require.Equal(t, 503, resp.StatusCode)
					require.Equal(t, body, readAll(t, resp.Body))
					require.Len(t, s.script.hits(), stop.hits)
					stopped := httpmw.Stopped(resp)
					if stop.reason == nil {
						require.Nil(t, stopped)
						return
					}
					require.NotNil(t, stopped)
					require.ErrorIs(t, stopped, stop.reason)
					require.Equal(t, stop.hits, stopped.Attempts)
				})
			})
		}
	}
	require.Nil(t, httpmw.Stopped(nil))
	require.Nil(t, httpmw.Stopped(&http.Response{}))
}

// R7: a repeat that the bulkhead refuses leaves the response, read before the
// wait or still open.
func TestR7_ARefusedRepeatLeavesTheResponse(t *testing.T) {
	for _, size := range []int{10, 200 << 10} {
		overEach(t, func(t *testing.T, proto memnet.Proto) {
			body := strings.Repeat("b", size)
			s := start(t, proto, narrow(), answers(status(503, body), dripping(1, 50*time.Millisecond, "slow")))
			var resp *http.Response
			var err error
			finished := make(chan struct{})
			go func() {
				defer close(finished)
				resp, err = s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
			}()
			time.Sleep(5 * time.Millisecond) // K2, D057: no permit is held during the back-off
			other, otherErr := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
			require.NoError(t, otherErr)
			<-finished
			require.NoError(t, err)
			require.Equal(t, body, readAll(t, resp.Body))
			require.ErrorIs(t, httpmw.Stopped(resp), bulkhead.ErrFull)
			require.Equal(t, "slow", readAll(t, other.Body))
		})
	}
}

// R7: a failed body too slow to be read does not hold the call up, and is whole
// if it comes back after all.
func TestR7_ASlowFailedBodyIsNotWaitedFor(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		slow := func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			dripping(4, time.Second, "drop")(w, r)
		}
		p := quick()
		p.Breaker.Consecutive = 2
		s := start(t, proto, p, answers(slow))
		begin := time.Now()
		resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		require.Less(t, time.Since(begin), time.Second)
		require.Equal(t, "dropdropdropdrop", readAll(t, resp.Body))
		require.ErrorIs(t, httpmw.Stopped(resp), breaker.ErrOpen)
		require.Len(t, s.script.hits(), 2)
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		slow := func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			dripping(4, time.Second, "drop")(w, r)
		}
		s := start(t, proto, narrow(), answers(slow, status(200, "fine")))
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, "fine", body)
	})
}

// A caller who cancels during the back-off gets its own error, and nothing is
// left open.
func TestACallerThatLeavesDuringTheWait(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := narrow()
		p.Retry.Backoff.Base = time.Second
		p.Retry.Backoff.Cap = time.Second
		s := start(t, proto, p, answers(status(503, strings.Repeat("b", 200<<10)), status(200, "fine")))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		begin := time.Now()
		_, _, err := s.do(t, s.request(t, ctx, http.MethodGet, "/", ""))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 100*time.Millisecond, time.Since(begin))
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, "fine", body)
	})
}
