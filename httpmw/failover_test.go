package httpmw_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// D065, T4, B14: a channel that accepts and stays silent costs one limit on the first
// message, and is skipped for all its models from then on.
func TestD065_ASilentChannelIsSkippedForAllItsModels(t *testing.T) {
	overBubbles(t, func(t *testing.T, l link) {
		p := brittle()
		p.Safety = call.Idempotent
		p.Breaker.Scope = breaker.TwoLevel
		p.Timeout = &timeout.Limits{Attempt: time.Minute, FirstMessage: 100 * time.Millisecond}
		c := network(t, l, map[string]*script{"a": answers(silent), "b": answers(events(time.Millisecond, "one", "two"))})
		c.over(t, holdfast.Config{Methods: map[string]holdfast.Policy{"POST /chat": p}}, []httpmw.Upstream{
			{URL: l.host("a"), Name: "A", Resource: "m1"},
			{URL: l.host("a"), Name: "A", Resource: "m2"},
			{URL: l.host("b"), Name: "B", Resource: "m1"},
		}, httpmw.WithFirstMessage(httpmw.FirstEvent))
		for i, want := range []time.Duration{101 * time.Millisecond, time.Millisecond} {
			begin := time.Now()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.host("a")+"/chat", strings.NewReader("{}"))
			require.NoError(t, err)
			resp, err := c.client.Do(req)
			require.NoError(t, err)
			require.Equal(t, want, time.Since(begin), i)
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, "data: one\n\ndata: two\n\n", string(text))
			require.Equal(t, "B|m1", httpmw.AnsweredBy(resp))
			require.Equal(t, map[string]int{"a": 1, "b": i + 1}, c.hits(), "A is hit once, and not at all by the next call")
		}
	})
}

// D066, T4: the limit on the first message begins with the attempt, dial and headers
// included, and holds for every hop and every attempt; what has lost is cancelled.
func TestD066_TheFirstMessagesLimitHoldsForEachHop(t *testing.T) {
	overBubbles(t, func(t *testing.T, l link) {
		gone := make(chan string, 10)
		late := func(name string, headers time.Duration) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(headers)
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				gone <- name
			}
		}
		p := quick()
		p.Retry.MaxAttempts = 2
		p.Breaker = breaker.Off()
		p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond}
		c := simple(t, l, p, map[string]*script{"a": answers(late("a", 40*time.Millisecond)), "b": answers(late("b", 0))}, "a", "b")
		c.servers["a"].Wire.Hang(true)
		time.AfterFunc(80*time.Millisecond, func() { c.servers["a"].Wire.Hang(false) })
		begin := time.Now()
		_, _, err := c.get(t)
		require.ErrorIs(t, err, timeout.ErrExceeded)
		require.Equal(t, 410*time.Millisecond, time.Since(begin), "two rounds of two limits, and the back-off")
		synctest.Wait()
		require.Equal(t, map[string]int{"a": 2, "b": 2}, c.hits())
		require.Len(t, gone, 4, "each was cancelled")
	})
}

// D067: with all channels open one forced try goes to the one with the least cooldown
// left; one that is forced open is never asked.
func TestD067_OneForcedTryWhenAllAreOpen(t *testing.T) {
	overBubbles(t, func(t *testing.T, l link) {
		down := status(http.StatusServiceUnavailable, "down")
		c := simple(t, l, brittle(), map[string]*script{
			"a": answers(down, status(http.StatusOK, "A is back")), "b": answers(down), "c": answers(status(http.StatusOK, "C")),
		}, "a", "b", "c")
		_, text, err := c.get(t)
		require.NoError(t, err)
		require.Equal(t, "C", text)
		c.breaker(t, "c").ForceOpen("maintenance")
		require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, c.hits())
		resp, text, err := c.get(t)
		require.NoError(t, err)
		require.Equal(t, "A is back", text)
		require.Equal(t, "a", httpmw.AnsweredBy(resp))
		require.Equal(t, breaker.Closed, c.breaker(t, "a").State())

		time.Sleep(time.Second)
		c.breaker(t, "a").ForceOpen("maintenance")
		resp, text, err = c.get(t)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "the caller gets the failure")
		require.Equal(t, "down", text)
		require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 1}, c.hits())
		_, _, err = c.get(t)
		require.ErrorIs(t, err, breaker.ErrOpen, "one a second")
	})
}

// F6: a failed answer is given up for the next upstream's, and comes back whole, with
// its permit returned, if that refuses.
func TestF6_TheLastRealAnswerComesBack(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		p := unhurried()
		p.Retry = retry.Off()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		long := strings.Repeat("down ", 40_000)
		c := simple(t, l, p, map[string]*script{
			"a": answers(status(http.StatusServiceUnavailable, long)), "b": answers(status(http.StatusOK, "B")),
		}, "a", "b")
		for range 4 {
			_, text, err := c.get(t)
			require.NoError(t, err)
			require.Equal(t, "B", text)
		}
		c.breaker(t, "b").ForceOpen("test")
		resp, text, err := c.get(t)
		require.NoError(t, err)
		require.Equal(t, long, text)
		require.Equal(t, "a", httpmw.AnsweredBy(resp))
		require.ErrorIs(t, httpmw.Stopped(resp), breaker.ErrOpen)
		require.Equal(t, 1, httpmw.Stopped(resp).Attempts)
	})
}

// K2: the permit of a failed answer is free for the next upstream, which may be another
// part of the same target.
func TestK2_AHopHoldsOnePermit(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		p := unhurried()
		p.Retry = retry.Off()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		c := network(t, l, map[string]*script{"a": answers(status(http.StatusServiceUnavailable, "down"), status(http.StatusOK, "ok"))})
		c.over(t, holdfast.Config{Default: p}, []httpmw.Upstream{{URL: l.host("a"), Name: "A", Resource: "m1"}, {URL: l.host("a"), Name: "A", Resource: "m2"}})
		resp, text, err := c.get(t)
		require.NoError(t, err)
		require.Equal(t, "ok", text)
		require.Equal(t, "A|m2", httpmw.AnsweredBy(resp))
	})
}

// R9, H2: each hop sends the whole body again, and the same key.
func TestR9_EachHopSendsTheBodyAndTheKey(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		p := unhurried()
		p.Retry = &retry.Policy{MaxAttempts: 1, IdempotencyKey: true}
		down := status(http.StatusServiceUnavailable, "down")
		for name, body := range map[string]func() io.Reader{
			"with GetBody":    func() io.Reader { return strings.NewReader("the body") },
			"without GetBody": func() io.Reader { return &opaque{Reader: strings.NewReader("the body")} },
		} {
			c := simple(t, l, p, map[string]*script{"a": answers(down), "b": answers(down), "c": answers(status(http.StatusOK, "C"))}, "a", "b", "c")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.host("a")+"/x", body())
			require.NoError(t, err)
			_, text, err := c.send(req)
			require.NoError(t, err)
			require.Equal(t, "C", text, name)
			keys := map[string]bool{}
			for _, s := range c.scripts {
				require.Len(t, s.hits(), 1, name)
				require.Equal(t, "the body", s.hits()[0].body, name)
				require.NotEmpty(t, s.hits()[0].header.Get("Idempotency-Key"))
				keys[s.hits()[0].header.Get("Idempotency-Key")] = true
			}
			require.Len(t, keys, 1, "one key for all hops")
			require.Empty(t, req.Header, "the caller's request is not changed")
			if o, ok := req.Body.(*opaque); ok {
				c.settled(t, func() bool { return o.closed() == 1 }, "its transport closes it, once")
			}
		}
	})
}

// F6, R2: a POST moves on only if nothing of it was sent.
func TestF6_APostMovesOnOnlyIfUnsent(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		down := status(http.StatusServiceUnavailable, "down")
		c := simple(t, l, unhurried(), map[string]*script{"a": answers(down), "b": answers(status(http.StatusOK, "B"))}, "a", "b")
		resp, _, err := c.do(t.Context(), http.MethodPost, l.host("a")+"/x", "order")
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.Equal(t, map[string]int{"a": 1}, c.hits())

		c.refuse(t, "a", true)
		_, text, err := c.do(t.Context(), http.MethodPost, l.host("a")+"/x", "order")
		require.NoError(t, err)
		require.Equal(t, "B", text)
		require.Equal(t, map[string]int{"a": 1, "b": 1}, c.hits())
		require.Equal(t, "order", c.scripts["b"].hits()[0].body)
	})
}

// A stream is switched only while nothing was delivered: one that breaks off before
// its first event moves on, one that breaks off later is the caller's to see, and a
// failure of its upstream (D076, D079).
func TestD079_AStreamMovesOnOnlyBeforeItsFirstEvent(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		p := unhurried()
		p.Retry = retry.Off()
		p.Timeout = &timeout.Limits{FirstMessage: 30 * time.Second}
		c := network(t, l, map[string]*script{
			"a": answers(events(time.Millisecond, "cut"), events(time.Millisecond, "a1", "a2", "cut")),
			"b": answers(events(time.Millisecond, "b1", "b2")),
		})
		c.over(t, holdfast.Config{Default: p}, []httpmw.Upstream{{URL: l.host("a"), Name: "a"}, {URL: l.host("b"), Name: "b"}},
			httpmw.WithFirstMessage(httpmw.FirstEvent))
		_, text, err := c.get(t)
		require.NoError(t, err)
		require.Equal(t, "data: b1\n\ndata: b2\n\n", text)
		resp, text, err := c.get(t)
		require.Error(t, err)
		require.Equal(t, "data: a1\n\ndata: a2\n\n", text)
		require.Equal(t, "a", httpmw.AnsweredBy(resp))
		require.Equal(t, map[string]int{"a": 2, "b": 1}, c.hits())
		require.Equal(t, 2, c.breaker(t, "a").Counts().Failures, "booked at their ends, once each")
		require.Equal(t, 2, c.breaker(t, "a").Counts().Results)
	})
}

// F7, D102: the bad one of four instances is left out after its own minimum, and the
// service's breaker judges the others.
func TestD102_ABadInstanceIsLeftOut(t *testing.T) {
	overBubbles(t, func(t *testing.T, l link) {
		ok, down := status(http.StatusOK, "ok"), status(http.StatusServiceUnavailable, "down")
		scripts := map[string]*script{"a": answers(ok), "b": answers(ok), "c": answers(down), "d": answers(ok)}
		p := quick()
		p.Retry = retry.Off()
		p.Breaker = &breaker.Config{Window: breaker.Window{Calls: 20}, MinCalls: 10, FailureRate: 0.5, Jitter: breaker.NoJitter}
		opened := 0
		p.Breaker.Hooks.Transition = func(breaker.Transition) { opened++ }
		c := network(t, l, scripts)
		up := httpmw.Upstream{Name: "service", Instances: []string{l.host("a"), l.host("b"), l.host("c"), l.host("d")}}
		c.over(t, holdfast.Config{Default: p}, []httpmw.Upstream{up})
		failed := 0
		ask := func() {
			resp, _, err := c.get(t)
			require.NoError(t, err)
			if resp.StatusCode != http.StatusOK {
				failed++
			}
			time.Sleep(50 * time.Millisecond)
		}
		for failed < 5 {
			ask()
		}
		require.Len(t, scripts["c"].hits(), 5)
		failed = 0
		for range 400 { // 20 s
			ask()
		}
		require.Less(t, failed, 8, "of 400: under 2 %%")
		require.GreaterOrEqual(t, failed, 1, "it has had a trial")
		require.Zero(t, opened, "the service's breaker was closed throughout")

		for _, s := range scripts {
			s.mu.Lock()
			s.steps = []http.HandlerFunc{down}
			s.mu.Unlock()
		}
		var err error
		for range 100 {
			_, _, err = c.get(t)
		}
		require.ErrorIs(t, err, breaker.ErrOpen, "all are bad: the service is")
	})
}

// A retry goes to another instance than the one that has just failed.
func TestF7_ARetryGoesToAnotherInstance(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		p := unhurried()
		p.Breaker.MinCalls = 10
		c := network(t, l, map[string]*script{"a": answers(status(http.StatusServiceUnavailable, "")), "b": answers(status(http.StatusOK, "B"))})
		c.over(t, holdfast.Config{Default: p}, []httpmw.Upstream{{Instances: []string{l.host("a"), l.host("b")}}})
		for range 4 {
			_, text, err := c.get(t)
			require.NoError(t, err)
			require.Equal(t, "B", text)
		}
		require.Equal(t, map[string]int{"a": 2, "b": 4}, c.hits())
	})
}

var errHook = errors.New("no token")

// An upstream's Prepare fails: the call ends, nothing was sent, nothing is held.
func TestAPrepareThatFailsEndsTheCall(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		c := network(t, l, map[string]*script{"a": answers(status(http.StatusOK, "")), "b": answers(status(http.StatusOK, ""))})
		p := unhurried()
		p.Bulkhead = &bulkhead.Config{Limit: 1}
		c.over(t, holdfast.Config{Default: p}, []httpmw.Upstream{
			{URL: l.host("a"), Prepare: func(*http.Request) error { return errHook }}, {URL: l.host("b")},
		})
		for range 3 {
			body := &opaque{Reader: strings.NewReader("x")}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, l.host("a"), body)
			require.NoError(t, err)
			_, _, err = c.send(req)
			require.ErrorIs(t, err, errHook)
			require.Equal(t, 1, body.closed())
		}
		require.Empty(t, c.hits())
	})
}
