package httpmw

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/wire/httpwire"
)

// served is the handler by which the oracle tells a match from a redirect to a
// cleaner path, for which ServeMux names a pattern too.
type served struct{}

func (served) ServeHTTP(http.ResponseWriter, *http.Request) {}

// matches asks ServeMux which of the patterns a request matches, "" for none.
func matches(req *http.Request, patterns ...httpwire.Pattern) string {
	mux := http.NewServeMux()
	for _, p := range patterns {
		mux.Handle(p.String(), served{})
	}
	h, key := mux.Handler(req)
	if _, ok := h.(served); !ok {
		return ""
	}
	return key
}

// anywhere returns a pattern without its host.
func anywhere(p httpwire.Pattern) httpwire.Pattern { p.Host = ""; return p }

// example makes a request that p is meant to match: its wildcards stand for the
// words, one after the other.
func example(p httpwire.Pattern, method string, words []string) *http.Request {
	segs := strings.Split(p.Path[1:], "/")
	for i, s := range segs {
		wild := strings.HasPrefix(s, "{")
		switch {
		case s == "{$}":
			segs[i] = ""
		case wild && strings.HasSuffix(s, "...}"), s == "" && i == len(segs)-1:
			segs[i] = strings.Join(words, "/")
		case wild:
			segs[i] = "w"
			if len(words) > 0 {
				segs[i], words = words[0], words[1:]
			}
		default:
			if plain, err := url.PathUnescape(s); err == nil {
				segs[i] = plain
			}
		}
	}
	if p.Method != "" {
		method = p.Method
	}
	host := p.Host
	if host == "" {
		host = "any.test"
	}
	return &http.Request{Method: method, Host: host, URL: &url.URL{Path: "/" + strings.Join(segs, "/")}}
}

// routeSeeds are pairs of patterns that nest, overlap, conflict or have nothing in
// common.
var routeSeeds = [][2]string{
	{"/", "GET /items/{id}"}, {"/items/", "GET /items/{id}"}, {"GET /items/{id}", "GET /items/7"},
	{"GET /items/{id}", "HEAD /items/{id}"}, {"GET /{a}/b", "GET /a/{b}"}, {"/{a}", "/{$}"},
	{"/a/{rest...}", "/a/{b}/c"}, {"/a/", "/a"}, {"/a/{$}", "/a/"}, {"api.test/", "/"},
	{"api.test/items/", "API.test/items/{id}"}, {"POST /a/{b}/{c...}", "POST /a/b/"},
	{"/%61/", "/a/b"}, {"/a%2Fb", "/a/b"}, {"CONNECT /a//b", "CONNECT /a/{b}/b"}, {"/é/", "/%C3%A9/x"},
	{"/{a}/{b...}", "/x/"}, {"/{a...}", "/b"}, {"[::1]/", "[::1]/x"}, {"/a//b", "/a/{x}/b"},
	{"/a/{x}/", "/a/{x}/{y}/"}, {"GET /", "/a"}, {"xn--fsq.test/a", "/a"}, {"/a/{b}", "/a/{c}"},
	{"/x...}", "/b/c"}, {"/x...}", "/x...}/c"}, {"/%7Bx%7D/", "/%7bx%7d/a"}, {"/%7B$%7D", "/{$}"}, {"/a/%2E/", "/a/./b"}, {"//", "/0/"},
}

// C1, and the inheritance of layers: ServeMux is the oracle for which pattern
// covers which. A request that q matches is matched by every p that covers q, and
// p and q, if one request matches both and they do not conflict, cover one
// another, the more particular one winning.
func FuzzRoutePatternsCover(f *testing.F) {
	for _, s := range routeSeeds {
		f.Add(s[0], s[1], "GET", "7/x/y")
		f.Add(s[1], s[0], "POST", "a/b")
		f.Add(s[0], s[1], "HEAD", "")
	}
	f.Fuzz(func(t *testing.T, a, b, method, fill string) {
		p, err := httpwire.Parse(a)
		if err != nil {
			return
		}
		q, err := httpwire.Parse(b)
		if err != nil {
			return
		}
		if !isToken(method) {
			method = http.MethodGet
		}
		require.Equal(t, (p.Host == "" || p.Host == q.Host) && anywhere(p).Covers(anywhere(q)), p.Covers(q), "the host of %q and %q", p, q)
		both := httpwire.Registers(http.NewServeMux(), p) == nil && httpwire.Conflict([]string{p.String(), q.String()}) == nil && p != q
		for _, words := range [][]string{strings.Split(fill, "/"), nil} {
			req := example(q, method, words)
			if path.Clean(req.URL.Path) != strings.TrimSuffix(req.URL.Path, "/") && req.URL.Path != "/" {
				continue // ServeMux would redirect it
			}
			if matches(req, q) == "" {
				continue
			}
			if p.Covers(q) {
				require.Equal(t, p.String(), matches(req, p), "%q covers %q, so it matches %s %s", p, q, req.Method, req.URL.Path)
			}
			if !both || matches(req, p) == "" || (p.Host == "") != (q.Host == "") {
				continue
			}
			require.NotEqual(t, p.Covers(q), q.Covers(p), "%q and %q both match %s %s", p, q, req.Method, req.URL.Path)
			winner := p
			if p.Covers(q) {
				winner = q
			}
			require.Equal(t, winner.String(), matches(req, p, q))
			require.Equal(t, []string{map[bool]string{true: p.String(), false: q.String()}[winner == q]},
				httpwire.Broader([]string{p.String(), q.String()})(winner.String()))
		}
	})
}

// C1: whatever is written as a key is refused with a reason, or is a pattern that
// ServeMux takes, that reads the same when read again, and that a client's request
// finds whatever the case of its host and its port.
func FuzzRoutePattern(f *testing.F) {
	for _, s := range routeSeeds {
		f.Add(s[0])
		f.Add(s[1])
	}
	for _, s := range []string{"", " ", "GET", "GET  /a", " /a ", "get /a", "http://a.test/", "a.test:80/", "*.test/", "u@a.test/",
		"/a?b", "/a#b", "/{", "/{}", "/{a}b", "/{a...}/b", "/{$}/a", "/{a}/{a}", "GET\t/a", "./", "../", "/a/../b", "a.test.//", "GET /\x00", "[::1]:80/", "G T /"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, written string) {
		p, err := httpwire.Parse(written)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.NotContains(t, err.Error(), ".go:")
			return
		}
		require.NoError(t, httpwire.Registers(http.NewServeMux(), p))
		again, err := httpwire.Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again)
		require.False(t, p.Method != strings.ToUpper(p.Method))

		req := example(p, http.MethodGet, []string{"x", "y"})
		if matches(req, p) == "" || notInHost.anyOf(req.Host) {
			return // an unclean path, or a host that no request can have
		}
		routes := newRoutes([]string{p.String()})
		hosts := []string{req.Host, req.Host + ":8080", req.Host + "."}
		if upper := strings.ToUpper(req.Host); strings.ToLower(upper) == req.Host {
			hosts = append(hosts, upper, upper+":8080")
		}
		for _, host := range hosts {
			require.Equal(t, p.String(), routes.match(&http.Request{Method: req.Method, URL: &url.URL{Host: host, Path: req.URL.Path}}), "host %q", host)
		}
	})
}
