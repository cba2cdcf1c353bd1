package httpmw_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
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
)

// D070: a request is the caller's: used a hundred times, it is what it was, and no
// header of the kit's piles up.
func TestD070_ARequestMayBeUsedAgain(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Breaker = breaker.Off()
		p.Retry.Budget = retry.NoBudget()
		p.Retry.IdempotencyKey = true
		s := start(t, proto, p, answers(status(503, "")),
			httpmw.WithAttemptNumberHeader("X-Attempt"),
			httpmw.WithAttemptHook(func(req *http.Request, n int) error {
				req.Header.Add("X-Signature", fmt.Sprint(n))
				return nil
			}))
		req := s.request(t, t.Context(), http.MethodPost, "/?a=b", "body")
		req.Header.Set("X-Own", "1")
		header, u, body := req.Header.Clone(), *req.URL, req.GetBody
		for range 100 {
			req.Body, _ = body()
			_, _, err := s.do(t, req)
			require.NoError(t, err)
			require.Equal(t, header, req.Header)
			require.Equal(t, u, *req.URL)
			require.Equal(t, int64(4), req.ContentLength)
			require.Equal(t, t.Context(), req.Context())
		}
		hits := s.script.hits()
		require.Len(t, hits, 300)
		for i, hit := range hits {
			require.Len(t, hit.header["Idempotency-Key"], 1)
			require.Equal(t, []string{fmt.Sprint(i%3 + 1)}, hit.header["X-Signature"])
			if i%3 > 0 {
				require.Equal(t, []string{fmt.Sprint(i % 3)}, hit.header["X-Attempt"])
			}
			require.Equal(t, slices.Sorted(maps.Keys(hits[i%3].header)), slices.Sorted(maps.Keys(hit.header)))
		}

		req = s.request(t, t.Context(), http.MethodPost, "/", "")
		req.Header = nil
		resp, err := s.transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Nil(t, req.Header)
	})
}

// D071, H4: no error text of the kit's, and nothing a hook is told, has a password or a query value, whatever
// ended the call. (The error of http.Client around it has the query: net/http's.)
func TestD071_NoSecretIsInAnError(t *testing.T) {
	const secret = "/x?token=abc"
	full := fragile()
	full.Bulkhead = &bulkhead.Config{Limit: 1}
	perMethod := fragile()
	perMethod.Breaker.Scope = breaker.PerMethod
	opened := func(t *testing.T, s *setup) {
		s.Wire.Refuse(true)
		for range 5 {
			_, err := s.transport.RoundTrip(newRequest(t, http.MethodGet, withUser(s.URL)+secret, nil))
			require.Error(t, err)
		}
	}
	for name, c := range map[string]struct {
		policy  holdfast.Policy
		prepare func(t *testing.T, s *setup)
	}{
		"refused":         {quick(), func(_ *testing.T, s *setup) { s.Wire.Refuse(true) }},
		"reset":           {quick(), func(_ *testing.T, s *setup) { time.AfterFunc(time.Millisecond, s.Wire.Reset) }},
		"timeout":         {quick(), func(_ *testing.T, s *setup) { s.Wire.Silence(true) }},
		"hang":            {quick(), func(_ *testing.T, s *setup) { s.Wire.Hang(true) }},
		"exhausted":       {quick(), func(*testing.T, *setup) {}},
		"open":            {fragile(), opened},
		"open per method": {perMethod, opened},
		"full": {full, func(t *testing.T, s *setup) {
			resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
			require.NoError(t, err)
			t.Cleanup(func() { resp.Body.Close() })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				var told []string
				s := startTable(t, proto, holdfast.Config{Default: c.policy, Hooks: holdfast.Hooks{
					Retry: func(_ context.Context, r holdfast.Retry) { told = append(told, fmt.Sprintf("%+v", r)) },
				}}, answers(status(503, "down")))
				c.prepare(t, s)
				resp, err := s.transport.RoundTrip(newRequest(t, http.MethodGet, withUser(s.URL)+secret, nil))
				if strings.HasPrefix(name, "open") {
					require.ErrorIs(t, err, breaker.ErrOpen)
				}
				if err == nil {
					require.NoError(t, resp.Body.Close())
					if stopped := httpmw.Stopped(resp); stopped != nil {
						err = stopped
					}
				}
				told = append(told, slices.Collect(maps.Keys(texts(err)))...)
				require.NotEmpty(t, told)
				for _, text := range told {
					require.NotContains(t, text, "pw")
					require.NotContains(t, text, "abc")
				}
			})
		})
	}
	t.Run("the request is refused", func(t *testing.T) {
		k := newKit(t, quick())
		for _, change := range []func(*http.Request){
			func(r *http.Request) { r.URL.Scheme = "" },
			func(r *http.Request) { r.URL.Scheme = "foo" },
			func(r *http.Request) { r.URL.Host = "" },
			func(r *http.Request) { r.Header.Set("X-Secret", "abc\n") },
			func(r *http.Request) { r.Method = "G T" },
		} {
			req := newRequest(t, http.MethodGet, "http://user:pw@api.test/x?token=abc", nil)
			change(req)
			_, err := httpmw.NewTransport(&http.Transport{}, k).RoundTrip(req)
			require.Error(t, err)
			for text := range texts(err) {
				require.NotContains(t, text, "pw")
				require.NotContains(t, text, "abc")
			}
		}
	})
}

func withUser(url string) string { return strings.Replace(url, "://", "://user:pw@", 1) }

// texts returns the text of err and of all that it wraps.
func texts(err error) map[string]bool {
	all := map[string]bool{}
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		all[err.Error()] = true
		switch w := err.(type) {
		case interface{ Unwrap() error }:
			walk(w.Unwrap())
		case interface{ Unwrap() []error }:
			for _, e := range w.Unwrap() {
				walk(e)
			}
		}
	}
	walk(err)
	return all
}
