package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// pattern is a key of the table, taken apart: [METHOD ][HOST]/[PATH].
type pattern struct {
	method string // "" is any
	host   string // "" is any
	path   string
}

// String returns the canonical form, which is the key.
func (p pattern) String() string {
	s := p.host + p.path
	if p.method != "" {
		s = p.method + " " + s
	}
	return s
}

// parsePattern reads a pattern and refuses what http.ServeMux would refuse, and
// what it would accept and never match on the client's side.
func parsePattern(s string) (pattern, error) {
	method, rest := "", strings.TrimSpace(s)
	if space := strings.IndexAny(rest, " \t"); space >= 0 {
		method, rest = rest[:space], strings.TrimLeft(rest[space:], " \t")
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return pattern{}, errors.New(`is no pattern: it has no path; write "GET /items/{id}", "api.example.com/" or "/"`)
	}
	p := pattern{method, matchHost(rest[:slash]), rest[slash:]}
	if upper := strings.ToUpper(method); upper != method {
		return pattern{}, fmt.Errorf("the method %q is never sent: write %s", method, upper)
	}
	switch {
	case strings.HasPrefix(p.path, "//") && strings.HasSuffix(rest[:slash], ":"):
		return pattern{}, errors.New("a pattern has no scheme: begin with the host")
	case p.host != strings.TrimSuffix(strings.ToLower(rest[:slash]), "."):
		return pattern{}, errors.New("a port in a pattern never matches: write the host alone")
	case rest[:slash] != "" && (p.host == "" || strings.HasSuffix(p.host, ".")):
		return pattern{}, errors.New("the host is no host: it has an empty label")
	case strings.ContainsAny(p.host, "@*"):
		return pattern{}, errors.New("the host never matches: it is compared as it stands, without user or wildcard")
	case strings.ContainsAny(p.path, "?#"):
		return pattern{}, errors.New("a query or fragment never matches: write the path alone")
	}
	return p, registers(http.NewServeMux(), p)
}

// registers returns why p cannot be added to mux. ServeMux panics then; its text
// names source files, which say nothing to the user of a table.
func registers(mux *http.ServeMux, p pattern) (err error) {
	defer func() {
		if r := recover(); r != nil {
			text := fmt.Sprint(r)
			if i := strings.LastIndex(text, ":\n"); i >= 0 {
				text = text[i+2:]
			}
			err = errors.New(strings.TrimSpace(text))
		}
	}()
	mux.Handle(p.String(), http.NotFoundHandler())
	return nil
}

// conflict returns an error that names the first two patterns of which neither
// is the more particular.
func conflict(keys []string) error {
	all := http.NewServeMux()
	for i, key := range keys {
		p, _ := parsePattern(key)
		if registers(all, p) == nil {
			continue
		}
		for _, earlier := range keys[:i] {
			pair := http.NewServeMux()
			q, _ := parsePattern(earlier)
			if registers(pair, q) != nil {
				continue
			}
			if reason := registers(pair, p); reason != nil {
				return fmt.Errorf("%q and %q conflict: %w", earlier, key, reason)
			}
		}
	}
	return nil
}

// broader returns the keys that apply to all that key applies to, the nearest
// first: as ServeMux has it, one with a host is nearer than one without, and
// else the more particular one.
func broader(key string, keys []string) []string {
	p, err := parsePattern(key)
	if err != nil {
		return nil
	}
	var wider []pattern
	for _, other := range keys {
		if q, err := parsePattern(other); err == nil && q != p && q.covers(p) {
			wider = append(wider, q)
		}
	}
	// No two of them conflict and both cover p, so that one covers the other
	// unless just one has a host.
	slices.SortFunc(wider, func(a, b pattern) int {
		switch {
		case a.host != b.host && a.host == "":
			return 1
		case a.host != b.host:
			return -1
		case a.covers(b):
			return 1
		}
		return -1
	})
	names := make([]string, len(wider))
	for i, q := range wider {
		names[i] = q.String()
	}
	return names
}

// covers reports whether p matches all that q matches.
func (p pattern) covers(q pattern) bool {
	if p.method != "" && p.method != q.method && !(p.method == http.MethodGet && q.method == http.MethodHead) {
		return false
	}
	if p.host != "" && p.host != q.host {
		return false
	}
	ps, qs := segments(p.path), segments(q.path)
	for i, s := range ps {
		switch {
		case isRest(s):
			return i < len(qs) // whatever follows, be it nothing
		case i >= len(qs) || isRest(qs[i]):
			return false
		case isWildcard(s):
			if qs[i] == "{$}" {
				return false
			}
		case s != qs[i]:
			return false
		}
	}
	return len(ps) == len(qs)
}

// segments splits a path behind its first slash. A trailing slash is the rest
// wildcard, as ServeMux reads it.
func segments(path string) []string {
	s := strings.Split(path[1:], "/")
	if last := len(s) - 1; s[last] == "" {
		s[last] = "{...}"
	}
	for i, segment := range s {
		if strings.HasPrefix(segment, "{") {
			continue
		}
		// ServeMux compares literals unescaped. One that begins with a brace then
		// must not be taken for a wildcard.
		if plain, err := url.PathUnescape(segment); err == nil {
			if strings.HasPrefix(plain, "{") || strings.HasPrefix(plain, "/") {
				plain = "/" + plain
			}
			s[i] = plain
		}
	}
	return s
}

func isWildcard(segment string) bool {
	return strings.HasPrefix(segment, "{") && segment != "{$}"
}

func isRest(segment string) bool { return isWildcard(segment) && strings.HasSuffix(segment, "...}") }
