package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/logbook"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// ledger notes begin and end of calls and attempts, and gives each attempt a
// header of its own.
type ledger struct{ logbook.Book }

func (l *ledger) hooks() holdfast.Hooks {
	return holdfast.Hooks{
		Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
			return nil, func(e holdfast.CallEnd) { l.Note("call over: %v %d", e.Result.Class, e.Result.Code) }
		},
		Attempt: func(_ context.Context, a call.Attempt) (context.Context, func(call.Result)) {
			if slices.Contains(a.Header.Keys(), "X-Attempt") || a.Header.Get("x-attempt") != "" {
				l.Note("the header of another attempt")
			}
			a.Header.Set("x-attempt", fmt.Sprint(a.Wire, a.Number))
			return nil, func(r call.Result) { l.Note("attempt %d over: %v %d", a.Number, r.Class, r.Code) }
		},
		Returned: func(_ context.Context, r holdfast.Returned) { l.Note("returned: %v", r.Result.Class) },
		Tried:    func(_ context.Context, r holdfast.Tried) { l.Note("tried %d: %v", r.Number, r.Result.Class) },
	}
}

// TestO1: a hook sets headers of each attempt, before the hook that signs; call
// and attempt are over when the body is.
func TestO1_AHookSetsTheAttemptsHeaders(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		l := &ledger{}
		s := startTable(t, proto, holdfast.Config{Default: quick(), Hooks: l.hooks()},
			answers(status(503, "no"), status(200, "yes"), status(404, "gone")),
			httpmw.WithAttemptHook(func(req *http.Request, n int) error {
				req.Header.Set("Signed", "over "+req.Header.Get("X-Attempt"))
				return nil
			}))
		req := s.request(t, t.Context(), http.MethodGet, "/", "")
		req.Header.Set("Own", "kept")
		resp, err := s.client.Do(req)
		require.NoError(t, err)
		require.Equal(t, http.Header{"Own": {"kept"}}, req.Header, "the caller's request is not changed")
		require.Equal(t, []string{
			"tried 1: unavailable", "attempt 1 over: unavailable 503", "tried 2: ok", "returned: ok",
		}, l.Take())
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, []string{"attempt 2 over: ok 200", "call over: ok 200"}, l.Take())
		resp.Body.Close()
		require.Empty(t, l.Take(), "once")
		for i, h := range s.script.hits() {
			require.Equal(t, []string{fmt.Sprintf("http%d", i+1)}, h.header["X-Attempt"])
			require.Equal(t, fmt.Sprintf("over http%d", i+1), h.header.Get("Signed"))
			require.Equal(t, "kept", h.header.Get("Own"))
		}
		_, _, err = s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, []string{"tried 1: client_fault", "attempt 1 over: client_fault 404", "returned: client_fault", "call over: client_fault 404"}, l.Take())
	})
}

// What becomes of the body is part of the attempt: of one that breaks, of one that
// nobody reads to its end.
func TestO1_ACallIsOverWithItsBody(t *testing.T) {
	cut := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		l := &ledger{}
		s := startTable(t, proto, holdfast.Config{Default: quick(), Hooks: l.hooks()}, answers(cut, endless))
		_, _, err := s.get(t, "/")
		require.Error(t, err)
		require.Equal(t, []string{"tried 1: ok", "returned: ok", "attempt 1 over: unavailable 0", "call over: unavailable 0"}, l.Take())

		ctx, cancel := context.WithCancel(t.Context())
		resp, err := s.client.Do(s.request(t, ctx, http.MethodGet, "/", ""))
		require.NoError(t, err)
		require.Equal(t, []string{"tried 1: ok", "returned: ok"}, l.Take())
		cancel()
		synctest.Wait()
		require.Equal(t, []string{"attempt 1 over: canceled 0", "call over: canceled 0"}, l.Take(), "though nobody reads")
		resp.Body.Close()
		require.Empty(t, l.Take())
	})
}

// Each attempt of a hedged call has headers of its own, and each ends once.
func TestO1_HedgesHaveHeadersOfTheirOwn(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		l := &ledger{}
		p := quick()
		p.Retry = &retry.Policy{Hedge: retry.Hedge{Delay: 10 * time.Millisecond}}
		s := startTable(t, proto, holdfast.Config{Default: p, Hooks: l.hooks()}, answers(silent, status(200, "fast")))
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, "fast", body)
		synctest.Wait()
		got := l.Take()
		require.ElementsMatch(t, []string{
			"tried 1: canceled", "attempt 1 over: canceled 0", "tried 2: ok", "returned: ok", "attempt 2 over: ok 200", "call over: ok 200",
		}, got)
		require.Equal(t, "call over: ok 200", got[len(got)-1])
		var sent []string
		for _, h := range s.script.hits() {
			sent = append(sent, h.header.Get("X-Attempt"))
		}
		require.Equal(t, []string{"http1", "http2"}, sent)
	})
}

// A hook that panics leaves no body open, neither the request's nor the answer's.
func TestO1_APanickingHookLeavesNoBody(t *testing.T) {
	for name, hooks := range map[string]holdfast.Hooks{
		"call": {Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) { panic("boom") }},
		"attempt": {Attempt: func(context.Context, call.Attempt) (context.Context, func(call.Result)) {
			panic("boom")
		}},
		"tried":    {Tried: func(context.Context, holdfast.Tried) { panic("boom") }},
		"returned": {Returned: func(context.Context, holdfast.Returned) { panic("boom") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, err := holdfast.New(holdfast.Config{Default: quick(), Hooks: hooks})
				require.NoError(t, err)
				k.Count()
				answer := &opaque{Reader: http.NoBody}
				transport := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
					req.Body.Close()
					return &http.Response{StatusCode: 200, Body: answer, ContentLength: 1}, nil
				}), k)
				body := &opaque{Reader: http.NoBody}
				req, err := http.NewRequest(http.MethodPut, "http://api.example.com/", body)
				require.NoError(t, err)
				require.PanicsWithValue(t, "boom", func() { _, _ = transport.RoundTrip(req) })
				synctest.Wait()
				require.NotZero(t, body.closed(), "the request's")
				if name == "tried" || name == "returned" {
					require.NotZero(t, answer.closed(), "the answer's")
				}
				for _, b := range k.Bulkheads() {
					require.Zero(t, b.InUse())
				}
				counted := uint64(0)
				for _, tally := range k.Tallies() {
					for c := call.OK; c.Valid(); c++ {
						counted += tally.Calls(c)
					}
				}
				if name != "call" { // else it has not begun
					require.EqualValues(t, 1, counted)
				}
			})
		})
	}
}

// Nor does it leave open the body of a fallback's answer, which the caller never gets.
func TestO1_APanickingHookLeavesNoFallbacksBody(t *testing.T) {
	for name, hooks := range map[string]holdfast.Hooks{
		"fallback": {Fallback: func(context.Context, holdfast.Fallback) { panic("boom") }},
		"returned": {Returned: func(context.Context, holdfast.Returned) { panic("boom") }},
	} {
		answer := &opaque{Reader: http.NoBody}
		p := quick()
		p.Retry, p.Fallback = retry.Off(), &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) {
			return &http.Response{StatusCode: 200, Body: answer}, nil
		}}
		k, err := holdfast.New(holdfast.Config{Default: p, Hooks: hooks})
		require.NoError(t, err)
		req, err := http.NewRequest(http.MethodGet, "http://a.test/", nil)
		require.NoError(t, err)
		require.PanicsWithValue(t, "boom", func() { _, _ = httpmw.NewTransport(&seen{}, k).RoundTrip(req) })
		require.Equal(t, 1, answer.closed(), name)
	}
}
