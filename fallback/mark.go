package fallback

import "strings"

// The names of the marks that a fallback's answer carries: header fields of
// HTTP, and keys of the response header of gRPC in lower case. Age is in whole
// seconds (RFC 9111, section 5.1), CacheStatus is as in RFC 9211.
const (
	AgeField         = "Age"
	CacheStatusField = "Cache-Status"
)

const cacheName = "holdfast"

// MarkedBy reports whether an answer is a fallback's, by the values of its
// [CacheStatusField]: of this process's kit, or of one in a server on its way here.
func MarkedBy(values []string) bool {
	for _, v := range values {
		for v != "" {
			member, rest := cutMember(v)
			name, _, _ := strings.Cut(member, ";")
			if strings.TrimSpace(name) == cacheName {
				return true
			}
			v = rest
		}
	}
	return false
}

// cutMember cuts the first member off a list (RFC 9651, section 3.1), in which a
// comma may also stand within quotes.
func cutMember(list string) (member, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++ // what follows stands for itself
		case c == ',' && !quoted:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}
