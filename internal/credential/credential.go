// Package credential lists the fields of a request by which it says who asks.
package credential

import "slices"

// fields hold what must not reach somebody else: header fields of HTTP, keys of gRPC's
// metadata.
var fields = [...]string{
	"authorization", "proxy-authorization", "cookie", "cookie2",
	"api-key", "x-api-key", "x-auth-token", "x-csrf-token", "x-goog-api-key", "x-amz-security-token",
}

// Fields returns the names, in lower case.
func Fields() []string { return slices.Clone(fields[:]) }

// Is reports whether a field, in lower case, is one of them.
func Is(name string) bool { return slices.Contains(fields[:], name) }
