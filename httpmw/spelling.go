package httpmw

import (
	"net/http"
)

// net/http sends the fields of a request's header as they are spelled in the map,
// and programs do put names there that are in no canonical form, for servers that
// mind. What a field means does not depend on its spelling (RFC 9110, section 5.1).

// spelled returns the request with its header in canonical form: req itself if that
// is so already, or else a copy to be looked at.
func spelled(req *http.Request) *http.Request {
	if isCanonical(req.Header) {
		return req
	}
	own := *req
	own.Header = canonical(req.Header)
	return &own
}

// canonical returns the header in canonical form: h itself if it is.
func canonical(h http.Header) http.Header {
	if isCanonical(h) {
		return h
	}
	own := make(http.Header, len(h))
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		own[name] = append(own[name], values...)
	}
	return own
}

func isCanonical(h http.Header) bool {
	for name := range h {
		if http.CanonicalHeaderKey(name) != name {
			return false
		}
	}
	return true
}
