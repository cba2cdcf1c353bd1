package httpmw

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// place is a base URL.
type place struct {
	scheme, host string
	origin       string // scheme, host and port in one form
	path         string // without a slash at its end
	escaped      string // the path, as it is sent
}

// parsePlace reads a base URL. Its errors do not repeat it: it may hold a secret.
func parsePlace(base string) (place, error) {
	u, err := url.Parse(base)
	switch {
	case base == "":
		return place{}, errors.New("is missing")
	case err != nil:
		return place{}, errors.New("is no URL")
	case u.Scheme == "" || u.Host == "" || u.Opaque != "":
		return place{}, errors.New("must have a scheme and a host, as https://api.example.com/v1")
	case u.User != nil:
		return place{}, errors.New("must not have a user: set the header Authorization in Prepare")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return place{}, errors.New("must not have a query or a fragment")
	case notInHost.anyOf(u.Host):
		return place{}, errors.New("has a host that is none")
	}
	return place{
		scheme: u.Scheme, host: u.Host, origin: target(u),
		path: strings.TrimSuffix(u.Path, "/"), escaped: strings.TrimSuffix(u.EscapedPath(), "/"),
	}, nil
}

// String returns the base URL with its port.
func (p place) String() string { return p.origin + p.escaped }

// rest returns what follows on the base in a URL that lies below it.
func (p place) rest(u *url.URL) (path, escaped string, below bool) {
	if u.Opaque != "" || target(u) != p.origin {
		return "", "", false
	}
	path, below = strings.CutPrefix(u.Path, p.path)
	if !below || path != "" && path[0] != '/' {
		return "", "", false
	}
	if escaped, below = strings.CutPrefix(u.EscapedPath(), p.escaped); !below {
		escaped = "" // the same path, escaped in another way
	}
	return path, escaped, true
}

// point makes u, whose path is the rest of one below another base, a URL below p.
func (p place) point(u *url.URL, path, escaped string) {
	u.Scheme, u.Host, u.User = p.scheme, p.host, nil
	u.Path, u.RawPath = p.path+path, p.escaped+escaped
	if u.RawPath == (&url.URL{Path: u.Path}).EscapedPath() {
		u.RawPath = "" // it says nothing
	}
}

// covers reports by its error whether a request's URL leads to the upstreams.
func (f *failover) covers(u *url.URL) error {
	if _, _, below := f.front.rest(u); !below {
		return fmt.Errorf("httpmw: the request is for %s and not for %s, which the upstreams answer for", target(u), f.front)
	}
	return nil
}
