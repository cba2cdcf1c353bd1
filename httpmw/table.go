package httpmw

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// find returns the policy of a request in the table in force, and the name it goes
// by: the pattern that matches, or the HTTP method alone. It is never the raw path,
// so that the names stay few and hold no secret.
func find(b *holdfast.Binding, req *http.Request) (*holdfast.Method, string) {
	table := b.Table()
	if key := table.Routes().(*routes).match(req); key != "" {
		return table.Method(key), key
	}
	return table.Default(), methodOf(req)
}

// matchHost returns a host as patterns are matched with it: in lower case,
// without port and final dot, an IPv6 address in brackets.
func matchHost(host string) string {
	host = strings.ToLower(host)
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host = host[:colon]
	}
	return strings.TrimSuffix(host, ".")
}

func methodOf(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// protocol is how HTTP names methods: patterns in http.ServeMux's syntax.
var protocol = wire.Protocol{
	Name: "http",
	Parse: func(name string) (string, error) {
		p, err := parsePattern(name)
		return p.String(), err
	},
	Conflict:  conflict,
	Broader:   broader,
	OneMethod: func(key string) bool { return methodOfKey(key) != "" },
	Declared: func(key string) call.Safety {
		if method := methodOfKey(key); method != "" {
			return safetyOf(method)
		}
		return call.SafetyUnknown
	},
	DeclaresAll: true,
	Find:        findByName,
	Routes:      func(keys []string) any { return newRoutes(keys) },
	Waits: wire.Waits{
		Attempt:      "to the response headers",
		FirstMessage: "the first byte of the body",
		Lengths:      true,
		Rest:         "each read of the body",
	},
}

func methodOfKey(key string) string {
	p, _ := parsePattern(key)
	return p.method
}

// findByName reads "GET /items/7" or "GET https://host/items/7" for Kit.Explain.
// Neither a user nor a query comes back in the name.
func findByName(name string, keys []string) (full, key string, declared call.Safety, ok bool) {
	method, address, found := strings.Cut(name, " ")
	if !found {
		method, address = http.MethodGet, name
	}
	address = strings.TrimSpace(address)
	if !isToken(method) || !strings.HasPrefix(address, "/") && !strings.Contains(address, "://") {
		return "", "", call.SafetyUnknown, false
	}
	u, err := url.Parse(address)
	if err != nil {
		return method, "", safetyOf(method), true // no request can have such a URL
	}
	if u.Path == "" {
		u.Path = "/"
	}
	key = newRoutes(keys).match(&http.Request{Method: method, URL: u})
	return method + " " + u.Host + u.Path, key, safetyOf(method), true
}
