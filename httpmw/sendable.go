package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// sendable refuses a request that no transport could send. These faults have no
// error type in net/http, so they are found before it is asked.
func sendable(req *http.Request) error {
	switch {
	case req == nil:
		return errors.New("httpmw: the request is nil")
	case req.URL == nil:
		return errors.New("httpmw: the request has no URL")
	case req.URL.Scheme == "":
		return errors.New("httpmw: the request's URL has no scheme")
	case isHTTP(req.URL.Scheme) && req.URL.Host == "":
		return errors.New("httpmw: the request's URL has no host")
	case req.Method != "" && !isToken(req.Method):
		return fmt.Errorf("httpmw: the request's method %q is no method", req.Method)
	}
	if notInHost.anyOf(req.Host) {
		return fmt.Errorf("httpmw: the request's host %q is no host", req.Host)
	}
	if err := sendableFields("header", req.Header); err != nil {
		return err
	}
	return sendableFields("trailer", req.Trailer)
}

// sendableFields refuses fields that cannot be sent. A value may be a secret: its
// error has the name only.
func sendableFields(kind string, fields http.Header) error {
	for name, values := range fields {
		if !isToken(name) {
			return fmt.Errorf("httpmw: the request's %s name %q is no name", kind, name)
		}
		if slices.ContainsFunc(values, notInValue.anyOf) {
			return fmt.Errorf("httpmw: the request's %s %s has a control character in a value", kind, name)
		}
	}
	return nil
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
