package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// whims are what a server may do with a request.
var whims = []string{"silent", "late", "503", "404", "429", "ok", "ok", "cut at once", "cut half way"}

// whim answers as one of them would. The events name the server.
func whim(what, name string) http.HandlerFunc {
	one, two := name+"1", name+"2"
	switch what {
	case "silent":
		return silent
	case "late":
		return events(150*time.Millisecond, one, two)
	case "cut at once":
		return events(time.Millisecond, "cut")
	case "cut half way":
		return events(time.Millisecond, one, "cut")
	case "ok":
		return events(time.Millisecond, one, two)
	}
	code := 0
	_, _ = fmt.Sscan(what, &code)
	return status(code, "status of "+name)
}

// F6: whatever servers and callers do, no stream has two upstreams' bytes, a request
// that may not be repeated reaches one server at most, each attempt is booked once,
// nobody asks one that is forced open, and nothing is held in the end.
func TestF6_WhateverTheUpstreamsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, checkFailover) })
}

func checkFailover(t *rapid.T) {
	l := link{proto: rapid.SampledFrom(memnet.Protos()).Draw(t, "wire")}
	n := rapid.IntRange(1, 4).Draw(t, "upstreams")
	opens := rapid.Bool().Draw(t, "breakers open")
	instances := rapid.Bool().Draw(t, "two are one")

	p := quick()
	p.Retry = &retry.Policy{MaxAttempts: rapid.IntRange(1, 3).Draw(t, "MaxAttempts"), Backoff: retry.Backoff{Base: 10 * time.Millisecond}, Budget: retry.NoBudget(), RetryAfterCap: time.Second}
	p.Breaker = &breaker.Config{Window: breaker.Window{Calls: 1000}, MinCalls: 1000, FailureRate: 1}
	if opens {
		p.Breaker = &breaker.Config{Consecutive: 2, Cooldown: 300 * time.Millisecond, ProbeSuccesses: 1}
	}
	p.Bulkhead = &bulkhead.Config{Limit: 100}
	if opens { // else nothing is refused, and what is booked can be counted
		p.Bulkhead.Limit = rapid.IntRange(1, 4).Draw(t, "permits")
	}
	p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond, Idle: time.Second}

	scripts, names := map[string]*script{}, []string{}
	for i := range n {
		name := string(rune('a' + i))
		names = append(names, name)
		var steps []http.HandlerFunc
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			steps = append(steps, whim(rapid.SampledFrom(whims).Draw(t, name), name))
		}
		scripts[name] = answers(steps...)
	}
	c := network(t, l, scripts)
	var ups []httpmw.Upstream
	for _, name := range names {
		ups = append(ups, httpmw.Upstream{URL: l.host(name), Name: name})
	}
	if instances && n > 1 {
		ups = append(ups[:n-2], httpmw.Upstream{Name: names[n-2], Instances: []string{l.host(names[n-2]), l.host(names[n-1])}})
	}
	var made, ended atomic.Int64
	c.over(t, holdfast.Config{Default: p, Hooks: holdfast.Hooks{
		Attempt: func(ctx context.Context, _ call.Attempt) (context.Context, func(call.Result)) {
			made.Add(1)
			return ctx, func(call.Result) { ended.Add(1) }
		},
	}}, ups, httpmw.WithFirstMessage(httpmw.FirstEvent), httpmw.WithFront("http://front"))

	forced, before := "", 0
	if rapid.Bool().Draw(t, "one is forced open") {
		_, _, _ = c.do(t.Context(), http.MethodGet, "http://front/", "") // its breaker is made by a call
		for name := range c.kit.Breakers() {
			if forced == "" || name < forced {
				forced = name
			}
		}
		c.breaker(t, forced).ForceOpen("test")
		before = len(scripts[forced].hits())
	}

	type outcome struct {
		unsafe bool
		text   string
		by     string
		code   int
	}
	var mu sync.Mutex
	outcomes := map[string]outcome{}
	var bodies []*opaque
	open := func(text string) *opaque {
		o := &opaque{Reader: strings.NewReader(text)}
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, o)
		return o
	}
	var callers sync.WaitGroup
	for i := range rapid.IntRange(1, 6).Draw(t, "calls") {
		method := rapid.SampledFrom([]string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPost}).Draw(t, "method")
		keyed := rapid.Bool().Draw(t, "keyed")
		refuse := rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "refuses")
		gives := rapid.IntRange(0, 5).Draw(t, "gives up") == 0
		withGetBody := rapid.Bool().Draw(t, "GetBody")
		together := rapid.Bool().Draw(t, "together")
		pause := time.Duration(rapid.IntRange(0, 4).Draw(t, "pause")) * 100 * time.Millisecond

		id := fmt.Sprint("call ", i)
		var body io.Reader
		if method != http.MethodGet {
			body = open(id)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if gives {
			time.AfterFunc(30*time.Millisecond, cancel)
		}
		req, err := http.NewRequestWithContext(ctx, method, "http://front/x", body)
		require.NoError(t, err)
		req.Header.Set("X-Call", id)
		if withGetBody && body != nil {
			req.GetBody = func() (io.ReadCloser, error) { return open(id), nil }
		}
		if keyed {
			req.Header.Set("Idempotency-Key", id)
		}
		if refuse != "" {
			c.refuse(t, refuse, true)
		}
		ask := func() {
			defer cancel()
			resp, text, _ := c.send(req)
			o := outcome{unsafe: method == http.MethodPost && !keyed, text: text}
			if resp != nil {
				o.by, o.code = httpmw.AnsweredBy(resp), resp.StatusCode
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[id] = o
		}
		if together {
			callers.Go(ask)
		} else {
			ask()
		}
		if refuse != "" {
			c.servers[refuse].Wire.Refuse(false)
		}
		time.Sleep(pause)
	}
	callers.Wait()
	synctest.Wait()
	time.Sleep(time.Second) // what was dropped is drained
	synctest.Wait()

	hits := map[string][]string{} // servers, by call
	for name, s := range scripts {
		for _, hit := range s.hits() {
			id := hit.header.Get("X-Call")
			hits[id] = append(hits[id], name)
			if hit.method != http.MethodGet {
				require.Equal(t, id, hit.body, "whole")
			}
		}
	}
	for id, o := range outcomes {
		if o.unsafe {
			require.LessOrEqual(t, len(hits[id]), 1, "%s was sent to %v", id, hits[id])
		}
		switch o.code {
		case 0:
		case http.StatusOK:
			require.NotEmpty(t, o.text, "the first event was there")
			from := o.text[len("data: ") : len("data: ")+1]
			full := "data: " + from + "1\n\ndata: " + from + "2\n\n"
			require.True(t, strings.HasPrefix(full, o.text), "%q", o.text)
			require.Contains(t, hits[id], from)
			if !instances {
				require.Equal(t, from, o.by)
			}
		default:
			require.Contains(t, o.text, "status of ")
		}
	}
	if forced != "" && !(instances && n > 1) {
		require.Len(t, scripts[forced].hits(), before, "%s is forced open", forced)
	}
	require.Equal(t, made.Load(), ended.Load(), "attempts ended")
	booked := int64(0)
	for _, b := range c.kit.Breakers() {
		counts := b.Counts()
		booked += int64(counts.Results) + int64(counts.Totals.Neutral)
		require.Zero(t, counts.Probes)
	}
	if !opens && forced == "" {
		require.Equal(t, made.Load(), booked, "each attempt is booked once")
	}
	for name, b := range c.kit.Bulkheads() {
		require.Zero(t, b.InUse(), "permits of %s", name)
	}
	for _, o := range bodies {
		require.Equal(t, 1, o.closed(), "a body is closed, and once")
	}
	c.transport.CloseIdleConnections()
	synctest.Wait()
	for name, s := range c.servers {
		require.Zero(t, s.Wire.Open(), "connections to %s", name)
	}
}
