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
	plain, secure sync.Map // string, the host, to string
	known         atomic.Int64
}

// maxTargets bounds what is remembered; who calls more hosts makes the names of
// the rest.
const maxTargets = 1000

// of returns the target of a URL.
func (t *targets) of(u *url.URL) string {
	byHost := &t.plain
	switch u.Scheme {
	case "http":
	case "https":
		byHost = &t.secure
	default:
		return target(u)
	}
	if name, ok := byHost.Load(u.Host); ok {
		return name.(string)
	}
	name := target(u)
	if t.known.Load() < maxTargets {
		t.known.Add(1)
		byHost.Store(u.Host, name)
	}
	return name
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
