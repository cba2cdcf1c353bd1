package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// sendable refuses a request that no transport could send. These faults have no
// error type in net/http, so they are found before it is asked. keyed says that the
// request carries an idempotency key: the header is gone through once for both.
func sendable(req *http.Request) (keyed bool, err error) {
	switch {
	case req == nil:
		return false, errors.New("httpmw: the request is nil")
	case req.URL == nil:
		return false, errors.New("httpmw: the request has no URL")
	case req.URL.Scheme == "":
		return false, errors.New("httpmw: the request's URL has no scheme")
	case isHTTP(req.URL.Scheme) && req.URL.Host == "":
		return false, errors.New("httpmw: the request's URL has no host")
	case nameOf(methodOf(req)) == otherMethod && !isToken(req.Method):
		return false, fmt.Errorf("httpmw: the request's method %q is no method", req.Method)
	}
	// A host that is none may hold a user and a password: no error repeats it.
	if notInHost.anyOf(req.Host) {
		return false, errors.New("httpmw: the request's Host is no host")
	}
	if strings.IndexByte(req.URL.Host, '@') > 0 { // what begins with it may be a socket's name
		return false, errors.New("httpmw: the host of the request's URL is no host: a user goes into URL.User")
	}
	if keyed, err = sendableFields("header", req.Header); err != nil {
		return false, err
	}
	_, err = sendableFields("trailer", req.Trailer)
	return keyed, err
}

// sendableFields refuses fields that cannot be sent. A value may be a secret: its
// error has the name only.
func sendableFields(kind string, fields http.Header) (keyed bool, err error) {
	if len(fields) == 0 { // to range over none costs more than to ask
		return false, nil
	}
	for name, values := range fields {
		if !isToken(name) {
			return false, fmt.Errorf("httpmw: the request's %s name %q is no name", kind, name)
		}
		if slices.ContainsFunc(values, notInValue.anyOf) {
			return false, fmt.Errorf("httpmw: the request's %s %s has a control character in a value", kind, name)
		}
		keyed = keyed || isKey(name) && slices.ContainsFunc(values, isSaid)
	}
	return keyed, nil
}

// isSaid reports whether a field's value is more than space, which is not sent. An
// idempotency key that is not is none: no server can tell a repeat by it.
func isSaid(value string) bool { return strings.Trim(value, " \t") != "" }

// isKey reports whether a field is that of an idempotency key, by the names that
// net/http looks for, however it is spelled.
func isKey(name string) bool {
	switch len(name) {
	case len("Idempotency-Key"):
		return strings.EqualFold(name, "Idempotency-Key")
	case len("X-Idempotency-Key"):
		return strings.EqualFold(name, "X-Idempotency-Key")
	}
	return false
}

func isHTTP(scheme string) bool { return scheme == "http" || scheme == "https" }

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool { return s != "" && !notInToken.anyOf(s) }

// octets is a set of bytes. Every request is searched for them, and a table is a
// fraction of the price of looking at runes.
type octets [256]bool

func octetsOf(in func(b byte) bool) *octets {
	var set octets
	for b := range len(set) {
		set[b] = in(byte(b))
	}
	return &set
}

// anyOf reports whether one of them is in s.
func (o *octets) anyOf(s string) bool {
	for i := range len(s) {
		if o[s[i]] {
			return true
		}
	}
	return false
}

var (
	notInToken = octetsOf(func(b byte) bool {
		switch {
		case '0' <= b && b <= '9', 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z':
			return false
		}
		return strings.IndexByte("!#$%&'*+-.^_`|~", b) < 0
	})

	// What else is wrong with a host is for the resolver to say.
	notInHost = octetsOf(func(b byte) bool { return b <= ' ' || b == 0x7f || strings.IndexByte(`/?#@\"<>`, b) >= 0 })

	// Control characters (RFC 9110, section 5.5).
	notInValue = octetsOf(func(b byte) bool { return b < ' ' && b != '\t' || b == 0x7f })
)
