package httpmw_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// A key that is no name for the wire is refused when the transport is made.
func TestC1_KeysThatAreNoPatternsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		keys []string
		want string
	}{
		"no path":           {[]string{"GET"}, `Methods["GET"]: is no pattern: it has no path; write "GET /items/{id}", "api.example.com/" or "/"`},
		"empty":             {[]string{""}, `Methods[""]: is no pattern`},
		"a port":            {[]string{"api.example.com:8080/"}, `Methods["api.example.com:8080/"]: a port in a pattern never matches: write the host alone`},
		"an empty segment":  {[]string{"/a//b", "//"}, `the path never matches: write it clean, as /a/b`},
		"a dot":             {[]string{"CONNECT /a/./b/"}, `the path never matches: write it clean, as /a/b/`},
		"a scheme":          {[]string{"http://api.example.com/"}, `a pattern has no scheme: begin with the host`},
		"a user":            {[]string{"user@api.example.com/"}, `the host never matches`},
		"any host":          {[]string{"*/x"}, `the host never matches`},
		"a query":           {[]string{"GET /x?y=1"}, `a query or fragment never matches: write the path alone`},
		"a fragment":        {[]string{"GET /x#y"}, `a query or fragment never matches: write the path alone`},
		"IPv6 with a port":  {[]string{"[::1]:80/"}, `a port in a pattern never matches: write the host alone`},
		"a lower case":      {[]string{"get /x"}, `Methods["get /x"]: the method "get" is never sent: write GET`},
		"a bad wildcard":    {[]string{"/a/{b"}, `Methods["/a/{b"]: `},
		"twice the same":    {[]string{"GET /x", "GET  /x"}, `names the same as Methods["GET  /x"]`},
		"a conflict":        {[]string{"GET /a/{x}", "GET /{y}/b", "/"}, `Methods: "GET /a/{x}" and "GET /{y}/b" conflict: `},
		"safety of a group": {[]string{"/search"}, `Methods["/search"].Safety = read_only: would hold only for methods of which http declares nothing: name the method`},
	} {
		t.Run(name, func(t *testing.T) {
			c := holdfast.Config{Methods: map[string]holdfast.Policy{}}
			for _, key := range tc.keys {
				p := holdfast.Policy{}
				if name == "safety of a group" {
					p.Safety = call.ReadOnly
				}
				c.Methods[key] = p
			}
			k, err := holdfast.New(c)
			require.NoError(t, err)
			_, err = httpmw.New(nil, k)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), ".go:")
			require.Panics(t, func() { httpmw.NewTransport(nil, k) })
		})
	}
}

// F1: HTTP declares what a method does; a fallback for a write is refused.
func TestF1_AFallbackForAWriteIsRefused(t *testing.T) {
	stale := &fallback.Policy{Answer: nil}
	stale.Answer = staleAnswer
	for key, refused := range map[string]bool{"POST /orders": true, "PUT /items/{id}": true, "GET /items/{id}": false, "/items/": false} {
		k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{key: {Fallback: stale}}})
		require.NoError(t, err)
		_, err = httpmw.New(nil, k)
		if refused {
			require.ErrorContains(t, err, "Fallback: only a ReadOnly method may have one")
		} else {
			require.NoError(t, err)
		}
	}
}

// The pattern in force, and what each of its layers is inherited from.
func TestLayersComeFromTheNextBroaderPattern(t *testing.T) {
	attempts := func(n int) *retry.Policy { return &retry.Policy{MaxAttempts: n} }
	k, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{Retry: attempts(9), Timeout: timeout.Off()},
		Methods: map[string]holdfast.Policy{
			"/":                               {Retry: attempts(2)},
			"/items/":                         {Retry: attempts(3)},
			"GET /items/{id}":                 {Breaker: breaker.Off()},
			"GET /items/special":              {Retry: attempts(5)},
			"GET /items/{id}/parts/{rest...}": {},
			"api.example.com/":                {Retry: attempts(7)},
			"GET api.example.com/items/{id}":  {},
			"POST /search":                    {Safety: call.ReadOnly},
			"/exact/{$}":                      {Retry: attempts(8)},
			"[2001:db8::1]/":                  {Retry: attempts(6)},
			"GET\t/tab":                       {},
		},
	})
	require.NoError(t, err)
	_, err = httpmw.New(nil, k)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		entry string
		retry string
		n     int
	}{
		"GET /items/7":                        {"GET /items/{id}", "/items/", 3},
		"HEAD /items/7":                       {"GET /items/{id}", "/items/", 3},
		"PUT /items/7":                        {"/items/", "/items/", 3},
		"GET /items/special":                  {"GET /items/special", "GET /items/special", 5},
		"GET /items/7/parts/a/b":              {"GET /items/{id}/parts/{rest...}", "/items/", 3},
		"GET /other":                          {"/", "/", 2},
		"GET https://API.example.com:8443/x":  {"api.example.com/", "api.example.com/", 7},
		"GET https://api.example.com/items/7": {"GET api.example.com/items/{id}", "api.example.com/", 7},
		"POST /search":                        {"POST /search", "/", 2},
		"GET /exact/":                         {"/exact/{$}", "/exact/{$}", 8},
		"GET https://api.example.com./x":      {"api.example.com/", "api.example.com/", 7},
		"GET https://[2001:DB8::1]:8443/x":    {"[2001:db8::1]/", "[2001:db8::1]/", 6},
		"GET https://api.example.com":         {"api.example.com/", "api.example.com/", 7},
		"GET /tab":                            {"GET\t/tab", "/", 2},
		"GET /exact/more":                     {"/", "/", 2},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := k.Explain(name)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("Methods[%q]", tc.entry), e.Entry)
			require.Equal(t, fmt.Sprintf("Methods[%q]", tc.retry), e.From.Retry)
			require.Equal(t, tc.n, e.Policy.Retry.MaxAttempts)
			require.Equal(t, "Default", e.From.Timeout)
		})
	}
	for _, secret := range []string{"GET https://u:pw@api.example.com/x?token=abc", "GET https://u:pw@[/x?token=abc"} { // H4
		e, err := k.Explain(secret)
		require.NoError(t, err)
		require.NotContains(t, e.String(), "pw")
		require.NotContains(t, e.String(), "abc")
	}
	_, err = k.Explain("nonsense")
	require.EqualError(t, err, `holdfast: "nonsense" is no name for http, and Config.Methods has no such entry`)
	e, err := k.Explain("POST /search")
	require.NoError(t, err)
	require.Equal(t, call.ReadOnly, e.Safety)
	require.Empty(t, e.OneAttempt)
	e, err = k.Explain("POST /orders")
	require.NoError(t, err)
	require.Equal(t, "it is unsafe, says the wire (http)", e.OneAttempt)
	require.Equal(t, []holdfast.Wait{
		{What: "the whole call, to the response headers", Bound: "only the caller's context"},
		{What: "one attempt, to the response headers", Bound: "only the caller's context"},
		{What: "the first byte of the body", Bound: "only the caller's context"},
		{What: "each read of the body", Bound: "only the caller's context"},
	}, e.Waits)
}

// What a pattern that names the method says of its safety holds for the narrower
// ones too; a fallback is held against what the entry or the wire says alone.
func TestSafetyIsInheritedFromABroaderPattern(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{Safety: call.Unsafe},
		Methods: map[string]holdfast.Policy{
			"POST /search/":     {Safety: call.ReadOnly},
			"POST /search/{id}": {Retry: retry.Off()},
			"/dav/":             {Fallback: &fallback.Policy{Answer: staleAnswer}},
		},
	})
	require.NoError(t, err)
	_, err = httpmw.New(nil, k)
	require.NoError(t, err)
	e, err := k.Explain("POST /search/7")
	require.NoError(t, err)
	require.Equal(t, call.ReadOnly, e.Safety)
	require.Equal(t, `Methods["POST /search/"]`, e.SafetyFrom)
}

// The pattern's policy is the one that runs, on every wire.
func TestEachPatternRunsItsOwnPolicy(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := startTable(t, proto, holdfast.Config{
			Default: quick(),
			Methods: map[string]holdfast.Policy{
				"GET /items/{id}":        {Retry: retry.Off()},
				"POST /search":           {Safety: call.ReadOnly},
				"GET other.example.com/": {Retry: retry.Off()},
			},
		}, answers(status(503, "")))
		for _, tc := range []struct {
			method, path string
			hits         int
		}{{http.MethodGet, "/items/1", 1}, {http.MethodPost, "/search", 3}} {
			before := len(s.script.hits())
			_, _, err := s.do(t, s.request(t, t.Context(), tc.method, tc.path, ""))
			require.NoError(t, err)
			require.Equal(t, tc.hits, len(s.script.hits())-before, tc.path)
		}
	})
}

// D024: the paths and queries of one route share one breaker, named for the route, and
// ten thousand of them make no other.
func TestD024_ARouteHasOneBreaker(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Retry = retry.Off()
		s := startTable(t, proto, holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{
			"GET /items/{id}": {Breaker: p.Breaker},
		}}, answers(status(500, "")))
		for _, path := range []string{"/items/1?q=a", "/items/2", "/items/3?q=b&secret=c", "/items/4", "/items/5"} {
			_, _, err := s.get(t, path)
			require.NoError(t, err)
		}
		_, _, err := s.get(t, "/items/6?token=abc")
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.ErrorContains(t, err, "|GET /items/{id} is open")
		var refusal *breaker.OpenError
		require.ErrorAs(t, err, &refusal)
		require.NotContains(t, refusal.Error(), "abc") // H4
	})
	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"GET /items/{id}": {Breaker: quick().Breaker}}})
	require.NoError(t, err)
	transport := httpmw.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	}), k)
	for i := range 10_000 {
		_, err := transport.RoundTrip(newRequest(t, http.MethodGet, fmt.Sprintf("http://api.test/items/%d?q=%d", i, i), nil))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"http://api.test:80|GET /items/{id}"}, slices.Collect(maps.Keys(maps.Collect(k.Breakers()))))
}
