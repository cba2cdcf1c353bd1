// Package grpcwire is how gRPC names methods in a kit's table: "/pkg.Service/Method"
// for a method, "pkg.Service" for all of a service.
package grpcwire

import (
	"errors"
	"strings"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Protocol returns the names of gRPC as far as they can be read without knowing
// the services; what those declare is the adapter's.
func Protocol() wire.Protocol {
	return wire.Protocol{
		Name:      "grpc",
		Parse:     Parse,
		Broader:   Broader,
		OneMethod: IsMethod,
		Declared:  func(string) call.Safety { return call.SafetyUnknown },
	}
}

var errName = errors.New(`is no gRPC name; a method is "/pkg.Service/Method", a service is "pkg.Service"`)

// Parse brings a name of the table into canonical form, the key.
func Parse(name string) (key string, err error) {
	trimmed := strings.TrimPrefix(name, "/")
	service, method, slash := strings.Cut(trimmed, "/")
	switch {
	case !IsService(service):
		return "", errName
	case slash && method != "":
		if !IsWord(method) {
			return "", errName
		}
		return "/" + service + "/" + method, nil
	case !slash && trimmed != name:
		return "", errName // "/pkg": a method that lacks its service, or a service its end
	}
	return service, nil
}

// IsService reports whether s is words joined by dots. A generated service is
// named by such words; a word that gRPC takes beside the letters, digits and
// underscores of protobuf is one with a hyphen.
func IsService(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if !IsWord(word) {
			return false
		}
	}
	return true
}

// IsWord reports whether s is one word of a name.
func IsWord(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != ""
}

// IsMethod reports whether a key names a method rather than a service.
func IsMethod(key string) bool { return strings.HasPrefix(key, "/") }

// ServiceOf returns the key of a method's service. The method is a key or the
// name in an RPC, which may be anything.
func ServiceOf(method string) string {
	if end := strings.LastIndexByte(method, '/'); end > 0 {
		return method[1:end]
	}
	return ""
}

// Broader returns what gives the key of a method's service, if keys hold it.
func Broader(keys []string) func(key string) []string {
	has := make(map[string]bool, len(keys))
	for _, key := range keys {
		has[key] = true
	}
	return func(key string) []string {
		if service := ServiceOf(key); IsMethod(key) && has[service] {
			return []string{service}
		}
		return nil
	}
}
