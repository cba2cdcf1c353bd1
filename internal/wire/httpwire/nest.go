package httpwire

import (
	"net/http"
	"slices"
)

// Nest is the patterns of a table, made ready to be held against each other.
type Nest []split

// split is a pattern with the segments of its path.
type split struct {
	Pattern
	segs []string
}

func (p Pattern) split() split { return split{p, Segments(p.Path)} }

// NestOf returns the nest of a table's keys.
func NestOf(keys []string) Nest {
	n := make(Nest, len(keys))
	for i, key := range keys {
		n[i] = Of(key).split()
	}
	return n
}

// Depth returns how many of the patterns apply to all that key applies to.
func (n Nest) Depth(key string) (depth int) {
	p := Of(key).split()
	for i := range n {
		if n[i].Pattern != p.Pattern && n[i].covers(&p) {
			depth++
		}
	}
	return depth
}

// Broader returns the keys that apply to all that key applies to, the nearest
// first: as ServeMux has it, one with a host is nearer than one without, and
// else the more particular one.
func (n Nest) Broader(key string) []string {
	p := Of(key).split()
	var wider []*split
	for i := range n {
		if n[i].Pattern != p.Pattern && n[i].covers(&p) {
			wider = append(wider, &n[i])
		}
	}
	// No two of them conflict and both cover p, so that one covers the other
	// unless just one has a host.
	slices.SortFunc(wider, func(a, b *split) int {
		switch {
		case a.Host != b.Host && a.Host == "":
			return 1
		case a.Host != b.Host:
			return -1
		case a.covers(b):
			return 1
		}
		return -1
	})
	names := make([]string, len(wider))
	for i, q := range wider {
		names[i] = q.String()
	}
	return names
}

// Broader is [Nest.Broader] for the keys of a table.
func Broader(keys []string) func(key string) []string { return NestOf(keys).Broader }

// covers reports whether p matches all that q matches.
func (p *split) covers(q *split) bool {
	if p.Method != "" && p.Method != q.Method && !(p.Method == http.MethodGet && q.Method == http.MethodHead) {
		return false
	}
	if p.Host != "" && p.Host != q.Host {
		return false
	}
	for i, s := range p.segs {
		switch {
		case IsRest(s):
			return i < len(q.segs) // whatever follows, be it nothing
		case i >= len(q.segs) || IsRest(q.segs[i]):
			return false
		case IsWildcard(s):
			if q.segs[i] == "{$}" {
				return false
			}
		case s != q.segs[i]:
			return false
		}
	}
	return len(p.segs) == len(q.segs)
}
