package httpmw

import (
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// targets remembers the names of the hosts that were called, so that a call need
// not make its own anew. The zero value is ready for use.
type targets struct {
	latest        atomic.Pointer[named] // added; most transports have one host
	plain, secure sync.Map              // string, the host, to *named
	known         atomic.Int64
}

// named is the name of a target.
type named struct{ scheme, host, name string }

// maxTargets bounds what is remembered; who calls more hosts makes the names of
// the rest.
const maxTargets = 1000

// of returns the target of a URL.
func (t *targets) of(u *url.URL) string {
	if n := t.latest.Load(); n != nil && n.host == u.Host && n.scheme == u.Scheme {
		return n.name
	}
	byHost := &t.plain
	switch u.Scheme {
	case "http":
	case "https":
		byHost = &t.secure
	default:
		return target(u)
	}
	if n, ok := byHost.Load(u.Host); ok {
		return n.(*named).name
	}
	n := &named{strings.Clone(u.Scheme), strings.Clone(u.Host), target(u)} // they may be pieces of a large URL
	if t.known.Load() < maxTargets {
		t.known.Add(1)
		byHost.Store(n.host, n)
		t.latest.Store(n)
	}
	return n.name
}

// target names the dependency of a URL: scheme, host and port.
func target(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if u.Port() == "" {
		switch u.Scheme {
		case "http":
			host = strings.TrimSuffix(host, ":") + ":80"
		case "https":
			host = strings.TrimSuffix(host, ":") + ":443"
		}
	}
	return u.Scheme + "://" + host
}
