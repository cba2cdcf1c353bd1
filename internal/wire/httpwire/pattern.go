package httpwire

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// Pattern is a key of a table, taken apart: [METHOD ][HOST]/[PATH].
type Pattern struct {
	Method string // "" is any
	Host   string // "" is any
	Path   string
}

// String returns the canonical form, which is the key.
func (p Pattern) String() string {
	s := p.Host + p.Path
	if p.Method != "" {
		s = p.Method + " " + s
	}
	return s
}

// Parse reads a pattern and refuses what http.ServeMux would refuse, and
// what it would accept and never match on the client's side.
func Parse(s string) (Pattern, error) {
	method, rest := "", strings.TrimSpace(s)
	if space := strings.IndexAny(rest, " \t"); space >= 0 {
		method, rest = rest[:space], strings.TrimLeft(rest[space:], " \t")
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return Pattern{}, errors.New(`is no pattern: it has no path; write "GET /items/{id}", "api.example.com/" or "/"`)
	}
	p := Pattern{method, Host(rest[:slash]), rest[slash:]}
	if upper := strings.ToUpper(method); upper != method {
		return Pattern{}, fmt.Errorf("the method %q is never sent: write %s", method, upper)
	}
	switch {
	case strings.HasPrefix(p.Path, "//") && strings.HasSuffix(rest[:slash], ":"):
		return Pattern{}, errors.New("a pattern has no scheme: begin with the host")
	case p.Host != strings.TrimSuffix(strings.ToLower(rest[:slash]), "."):
		return Pattern{}, errors.New("a port in a pattern never matches: write the host alone")
	case rest[:slash] != "" && (p.Host == "" || strings.HasSuffix(p.Host, ".")):
		return Pattern{}, errors.New("the host is no host: it has an empty label")
	case strings.ContainsAny(p.Host, "@*"):
		return Pattern{}, errors.New("the host never matches: it is compared as it stands, without user or wildcard")
	case strings.ContainsAny(p.Path, "?#"):
		return Pattern{}, errors.New("a query or fragment never matches: write the path alone")
	}
	clean := path.Clean(p.Path)
	if clean != "/" && strings.HasSuffix(p.Path, "/") {
		clean += "/"
	}
	if clean != p.Path {
		// A request's path is cleaned before it is matched; and ServeMux itself takes an
		// empty segment of a pattern for one that stands for any.
		return Pattern{}, fmt.Errorf("the path never matches: write it clean, as %s", clean)
	}
	return p, Registers(http.NewServeMux(), p)
}

// Registers returns why p cannot be added to mux. ServeMux panics then; its text
// names source files, which say nothing to the user of a table.
func Registers(mux *http.ServeMux, p Pattern) (err error) {
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

// Conflict returns an error that names the first two patterns of which neither
// is the more particular.
func Conflict(keys []string) error {
	all := http.NewServeMux()
	for i, key := range keys {
		p := Of(key)
		if Registers(all, p) == nil {
			continue
		}
		for _, earlier := range keys[:i] {
			pair := http.NewServeMux()
			q := Of(earlier)
			if Registers(pair, q) != nil {
				continue
			}
			if reason := Registers(pair, p); reason != nil {
				return fmt.Errorf("%q and %q conflict: %w", earlier, key, reason)
			}
		}
	}
	return nil
}

// Of takes apart a key, which [Parse] has made. It costs little: nothing is checked.
// Of anything else it makes the zero Pattern.
func Of(key string) Pattern {
	method, rest, found := strings.Cut(key, " ")
	if !found {
		method, rest = "", key
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return Pattern{}
	}
	return Pattern{method, rest[:slash], rest[slash:]}
}

// Covers reports whether p matches all that q matches.
func (p Pattern) Covers(q Pattern) bool {
	ps, qs := p.split(), q.split()
	return ps.covers(&qs)
}

// Segments splits a path behind its first slash. A trailing slash is the rest
// wildcard, as ServeMux reads it.
func Segments(path string) []string {
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

// IsWildcard reports whether a segment stands for any.
func IsWildcard(segment string) bool {
	return strings.HasPrefix(segment, "{") && segment != "{$}"
}

// IsRest reports whether a segment stands for whatever follows.
func IsRest(segment string) bool { return IsWildcard(segment) && strings.HasSuffix(segment, "...}") }
