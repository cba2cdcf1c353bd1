// Package httpwire is how HTTP names methods in a kit's table: by patterns in the
// syntax of http.ServeMux.
package httpwire

import (
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Protocol returns the names of HTTP; how requests find them is the adapter's.
func Protocol() wire.Protocol {
	return wire.Protocol{
		Name: "http",
		Parse: func(name string) (string, error) {
			p, err := Parse(name)
			return p.String(), err
		},
		Conflict:  Conflict,
		Broader:   Broader,
		OneMethod: func(key string) bool { return methodOf(key) != "" },
		Declared: func(key string) call.Safety {
			if method := methodOf(key); method != "" {
				return Safety(method)
			}
			return call.SafetyUnknown
		},
		DeclaresAll: true,
	}
}

func methodOf(key string) string {
	return Of(key).Method
}

// Host returns a host as patterns are matched with it: in lower case, without port
// and final dot, an IPv6 address in brackets.
func Host(host string) string {
	host = strings.ToLower(host)
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host = host[:colon]
	}
	return strings.TrimSuffix(host, ".")
}

// Safety returns what RFC 9110, section 9.2, says about repeating a method, and
// nothing for a method that it does not define.
func Safety(method string) call.Safety {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return call.ReadOnly
	case http.MethodPut, http.MethodDelete:
		return call.Idempotent
	case http.MethodPost, http.MethodPatch, http.MethodConnect:
		return call.Unsafe
	}
	return call.SafetyUnknown
}
