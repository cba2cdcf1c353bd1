package httpmw

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/wire/httpwire"
)

// What is matched here is what http.ServeMux matches, for any table and path.
func TestRoutesMatchAsServeMuxDoes(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "é", "{x}", "{y}"})
	key := rapid.Custom(func(t *rapid.T) string {
		method := rapid.SampledFrom([]string{"", "GET ", "HEAD ", "POST "}).Draw(t, "method")
		host := rapid.SampledFrom([]string{"", "", "h.test"}).Draw(t, "host")
		segs := rapid.SliceOfN(segment, 0, 3).Draw(t, "path")
		for i := range segs { // a wildcard's name may stand once
			if strings.HasPrefix(segs[i], "{") {
				segs[i] = string(rune('{')) + string(rune('m'+i)) + "}"
			}
		}
		end := rapid.SampledFrom([]string{"", "/", "/{$}", "/{rest...}"}).Draw(t, "end")
		path := "/" + strings.Join(segs, "/")
		if len(segs) == 0 {
			path = ""
			if end == "" {
				end = "/"
			}
		}
		return method + host + path + end
	})
	rapid.Check(t, func(t *rapid.T) {
		var keys []string
		for _, k := range rapid.SliceOfN(key, 1, 8).Draw(t, "keys") {
			p, err := httpwire.Parse(k)
			if err != nil || httpwire.Conflict(append([]string{p.String()}, keys...)) != nil {
				continue
			}
			keys = append(keys, p.String())
		}
		r := newRoutes(keys)
		if r == nil {
			return
		}
		for range 20 {
			req := &http.Request{
				Method: rapid.SampledFrom([]string{"", "GET", "HEAD", "POST", "PUT"}).Draw(t, "method"),
				Host:   rapid.SampledFrom([]string{"h.test", "H.test:80", "other.test"}).Draw(t, "host"),
				URL: &url.URL{Path: "/" + strings.Join(rapid.SliceOfN(
					rapid.SampledFrom([]string{"a", "b", "é", "c", "", ".", "..", "%"}), 0, 4).Draw(t, "path"), "/")},
			}
			_, want := r.mux.Handler(&http.Request{Method: methodOf(req), Host: httpwire.Host(req.Host), URL: req.URL})
			require.Equal(t, want, r.match(req), "%v %v %v in %q", req.Method, req.Host, req.URL.Path, keys)
		}
	})
}

// A plain path is matched without allocating, literals and wildcards alike.
func TestMatchingDoesNotAllocate(t *testing.T) {
	r := newRoutes([]string{"GET /items/{id}", "/items/", "api.example.com/", "POST /orders"})
	for path, want := range map[string]string{"/items/7": "GET /items/{id}", "/items/7/parts": "/items/"} {
		req := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "www.example.com:8443", Path: path}}
		require.Equal(t, want, r.match(req))
		require.Zero(t, testing.AllocsPerRun(100, func() { r.match(req) }))
	}
}
