package telemetry

import "strings"

// ScopeName is the instrumentation scope of metrics and spans.
const ScopeName = "github.com/holdfast-go/holdfast/telemetry"

// redact takes from a name what may be a secret, should it hold a URL: the user
// and the query. Targets and keys that the adapters make hold neither; a name that
// somebody gave to Do or WithTarget might.
func redact(name string) string {
	if i := strings.Index(name, "://"); i >= 0 {
		scheme, rest := name[:i+3], name[i+3:]
		host := rest
		if slash := strings.IndexAny(rest, "/?#|"); slash >= 0 {
			host = rest[:slash]
		}
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			rest = rest[at+1:]
		}
		name = scheme + rest
	}
	if q := strings.IndexByte(name, '?'); q >= 0 {
		end := strings.IndexByte(name[q:], '|') // a part of the target follows
		if end < 0 {
			return name[:q]
		}
		return name[:q] + name[q+end:]
	}
	return name
}
