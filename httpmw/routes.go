package httpmw

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/wire/httpwire"
)

// routes matches requests with the patterns of a table. http.ServeMux defines what
// matches; what follows from its rules for plain paths is done here without
// allocating, and the rest is asked of a mux. The nil routes match nothing.
type routes struct {
	list []route // the narrower before the broader
	mux  *http.ServeMux
}

// route is a pattern made ready for matching.
type route struct {
	httpwire.Pattern
	key  string
	segs []segment
	rest bool // the last segment stands for whatever follows
}

// segment is one segment of a pattern's path.
type segment struct {
	literal string
	wild    bool // any segment that is not empty
}

// newRoutes returns the matcher of a table's keys, which do not conflict.
func newRoutes(keys []string) *routes {
	if len(keys) == 0 {
		return nil
	}
	r := &routes{mux: http.NewServeMux()}
	for _, key := range keys {
		// The mux serves nothing: it only matches.
		r.mux.Handle(key, http.NotFoundHandler())
		r.list = append(r.list, newRoute(httpwire.Of(key), key))
	}
	// One with a host goes before all without, and of two that both match the one
	// that the other covers: it is covered by more of them.
	depth, nest := make(map[string]int, len(keys)), httpwire.NestOf(keys)
	for _, key := range keys {
		depth[key] = nest.Depth(key)
	}
	slices.SortStableFunc(r.list, func(a, b route) int {
		if a.Host == "" != (b.Host == "") {
			return cmp.Compare(b.Host, a.Host)
		}
		return cmp.Compare(depth[b.key], depth[a.key])
	})
	return r
}

func newRoute(p httpwire.Pattern, key string) route {
	r := route{Pattern: p, key: key}
	for _, s := range httpwire.Segments(p.Path) {
		switch {
		case httpwire.IsRest(s):
			r.rest = true
		case s == "{$}":
			r.segs = append(r.segs, segment{})
		case httpwire.IsWildcard(s):
			r.segs = append(r.segs, segment{wild: true})
		default:
			// The slash in front marks a literal that is not to be taken for more.
			r.segs = append(r.segs, segment{literal: strings.TrimPrefix(s, "/")})
		}
	}
	return r
}

// match returns the key of the pattern that the request matches, "" if none does.
func (r *routes) match(req *http.Request) string {
	if r == nil {
		return ""
	}
	method, host := methodOf(req), req.Host
	if host == "" {
		host = req.URL.Host
	}
	host = httpwire.Host(host)
	if plainPath(req) {
		return r.find(method, host, req.URL.Path)
	}
	// ServeMux reads a server's request: these three fields of it. It also names
	// the pattern of the clean path.
	_, key := r.mux.Handler(&http.Request{Method: method, Host: host, URL: req.URL})
	return key
}

// find returns the key that a plain path matches. Where a pattern stands for just
// this path with a slash at its end, ServeMux would redirect there, and so that is
// what the path goes by, unless another pattern has it as it stands.
func (r *routes) find(method, host, path string) string {
	first, exact := r.first(method, host, path, false)
	if exact || strings.HasSuffix(path, "/") {
		return first
	}
	if slashed, exact := r.first(method, host, path, true); exact {
		return slashed
	}
	return first
}

// first returns the narrowest key that matches a path, or the path with a slash
// after it, and whether that is all that the pattern's path says.
func (r *routes) first(method, host, path string, slash bool) (key string, exact bool) {
	for i := range r.list {
		if matches, exact := r.list[i].matches(method, host, path, slash); matches {
			return r.list[i].key, exact
		}
	}
	return "", false
}

// plainPath reports whether a path's segments are what stands between its slashes.
func plainPath(req *http.Request) bool {
	p := req.URL.Path
	return req.Method != http.MethodConnect && req.URL.RawPath == "" && strings.HasPrefix(p, "/") &&
		!strings.Contains(p, "//") && !strings.Contains(p, "/.") && !strings.Contains(p, "%")
}

func (r *route) matches(method, host, path string, slash bool) (matches, exact bool) {
	if r.Method != "" && r.Method != method && !(r.Method == http.MethodGet && method == http.MethodHead) {
		return false, false
	}
	if r.Host != "" && r.Host != host {
		return false, false
	}
	rest, more := path[1:], true
	for _, s := range r.segs {
		if !more {
			return false, false
		}
		var is string
		if is, rest, more = strings.Cut(rest, "/"); !more && slash {
			more, slash = true, false
		}
		if s.wild && is == "" || !s.wild && is != s.literal {
			return false, false
		}
	}
	return more == r.rest, !r.rest || rest == "" && !slash
}
