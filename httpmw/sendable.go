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
	if strings.ContainsFunc(req.Host, isNoHost) {
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
		if slices.ContainsFunc(values, func(v string) bool { return strings.ContainsFunc(v, isControl) }) {
			return fmt.Errorf("httpmw: the request's %s %s has a control character in a value", kind, name)
		}
	}
	return nil
}

// isNoHost reports whether r may not stand in a Host field. What else is wrong
// with a host is for the resolver to say.
func isNoHost(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/?#@\"<>`, r) }

func isHTTP(scheme string) bool { return scheme == "http" || scheme == "https" }

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			return false
		}
		return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// isControl reports whether r may not stand in a field value (RFC 9110, section
// 5.5).
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
