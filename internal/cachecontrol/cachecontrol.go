// Package cachecontrol reads the header field Cache-Control (RFC 9111, section
// 5.2, and RFC 5861).
package cachecontrol

import (
	"strings"
	"time"
)

// Directives is what a Cache-Control says, as far as a cache asks that answers for
// a dependency in trouble only. The zero value says nothing.
//
// Where a directive comes twice the narrower one holds. A field list, as in
// private="Set-Cookie", makes no difference: the directive holds for the whole
// answer.
type Directives struct {
	NoStore        bool
	NoCache        bool
	Private        bool
	MustRevalidate bool // or proxy-revalidate; s-maxage says so as well

	MaxAge       Seconds
	SharedMaxAge Seconds // s-maxage
	StaleIfError Seconds
}

// Limit returns the age up to which an answer that was fresh for so long may be given
// when the dependency does not answer, most at the longest.
func (d Directives) Limit(fresh, most time.Duration) time.Duration {
	if d.MustRevalidate {
		most = min(most, fresh)
	}
	if d.StaleIfError.Set {
		most = min(most, fresh+d.StaleIfError.Duration)
	}
	return most
}

// Seconds is the argument of a directive. A directive with an argument that is no
// number of seconds counts as 0 seconds: it was meant to say something.
type Seconds struct {
	Set bool
	time.Duration
}

// most is what a number too large to be held counts as (RFC 9111, section 1.2.2).
const most = 1 << 31

// Parse reads the values of the field, one for each line of it. It returns false
// if one of them is no list of directives: nobody knows then what it forbids.
// Directives of other names are passed over.
func Parse(values []string) (d Directives, ok bool) {
	for _, v := range values {
		for s := (scanner{v}); ; {
			s.skip(" \t,") // an empty member of a list is none
			if s.rest == "" {
				break
			}
			name, argument, given, ok := s.directive()
			if !ok {
				return Directives{}, false
			}
			d.add(strings.ToLower(name), argument, given)
		}
	}
	return d, true
}

func (d *Directives) add(name, argument string, given bool) {
	switch name {
	case "no-store":
		d.NoStore = true
	case "no-cache":
		d.NoCache = true
	case "private":
		d.Private = true
	case "must-revalidate", "proxy-revalidate":
		d.MustRevalidate = true
	case "max-age":
		d.MaxAge.narrow(argument, given)
	case "s-maxage":
		d.SharedMaxAge.narrow(argument, given)
		d.MustRevalidate = true
	case "stale-if-error":
		d.StaleIfError.narrow(argument, given)
	}
}

// narrow makes s the argument, unless it is narrower already.
func (s *Seconds) narrow(argument string, given bool) {
	var n int64
	for _, c := range []byte(argument) {
		if c < '0' || c > '9' {
			n = 0
			break
		}
		n = min(n*10+int64(c-'0'), most)
	}
	if !given {
		n = 0
	}
	if d := time.Duration(n) * time.Second; !s.Set || d < s.Duration {
		*s = Seconds{true, d}
	}
}

// scanner takes a value apart from its start.
type scanner struct{ rest string }

func (s *scanner) skip(chars string) { s.rest = strings.TrimLeft(s.rest, chars) }

// directive takes a token with an optional argument, and what may follow it: space
// and a comma, or the end.
func (s *scanner) directive() (name, argument string, given, ok bool) {
	if name = s.token(); name == "" {
		return "", "", false, false
	}
	if given = strings.HasPrefix(s.rest, "="); given {
		s.rest = s.rest[1:]
		if strings.HasPrefix(s.rest, `"`) {
			argument, ok = s.quoted()
		} else {
			argument = s.token()
			ok = argument != ""
		}
		if !ok {
			return "", "", false, false
		}
	}
	s.skip(" \t")
	return name, argument, given, s.rest == "" || s.rest[0] == ','
}

func (s *scanner) token() string {
	n := 0
	for n < len(s.rest) && isTokenChar(s.rest[n]) {
		n++
	}
	token := s.rest[:n]
	s.rest = s.rest[n:]
	return token
}

// quoted takes a quoted string and returns what it stands for.
func (s *scanner) quoted() (text string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return b.String(), true
		case c == '\\':
			if i++; i == len(s.rest) || !isText(s.rest[i]) {
				return "", false
			}
			b.WriteByte(s.rest[i])
		case !isText(c):
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// isTokenChar reports whether c may stand in a token (RFC 9110, section 5.6.2).
func isTokenChar(c byte) bool {
	switch {
	case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		return true
	}
	return c != 0 && strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isText reports whether c may stand in a quoted string (RFC 9110, section 5.6.4).
func isText(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f }
