package policyfile

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// number reads a number above 0, or 0 where that means something.
func (d *decoder) number(n *node, s *shape, path string) (float64, bool) {
	if odd := oddNumber(n.text); n.kind == text && n.fault == "" && odd != "" {
		d.add(n, path, "= %s: %s", n.text, odd)
		return 0, false
	}
	if !d.is(n, path, number, s.String()) {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.text, 64)
	switch {
	case err != nil:
		d.value(n, path, "is out of range")
	case f == 0 && strings.ContainsAny(n.text[:mantissa(n.text)], "123456789") && s.is == decimal && n.text[0] != '-':
		d.value(n, path, "is too small for a number")
	case f < 0 || f == 0 && !s.zero:
		d.notAboveZero(n, s, path, f == 0)
	default:
		return f, true
	}
	return 0, false
}

// whole reports whether a number, which is about f, is an integer. 1.0 and 1e3 are.
func whole(written string, f float64) bool {
	if _, after, ok := strings.Cut(written, "."); ok && mantissa(written) == len(written) {
		return strings.Trim(after, "0") == ""
	}
	return f == math.Trunc(f)
}

// mantissa returns where the exponent of a number begins.
func mantissa(s string) int {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return i
	}
	return len(s)
}

// value adds a fault of what is said, not of how.
func (d *decoder) value(n *node, path, text string) {
	d.add(n, path, "= %s: %s", shown(n), text)
	d.faults[len(d.faults)-1].form = false
}

func (d *decoder) notAboveZero(n *node, s *shape, path string, zero bool) {
	instead := ""
	if len(s.words) > 0 && s.words[0].text == "none" {
		instead = "; write none if that is meant"
	}
	switch {
	case zero:
		d.add(n, path, "= %s: has no meaning of its own; leave it out for the default%s", n.text, instead)
	case s.zero:
		d.add(n, path, "= %s: must not be negative", n.text)
	default:
		d.add(n, path, "= %s: must be above 0%s", n.text, instead)
	}
}

// integer sets an integer, which may be written as 1e3 too.
func (d *decoder) integer(n *node, path string, v reflect.Value) {
	i, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil {
		f, _ := strconv.ParseFloat(n.text, 64)
		if f >= 1<<53 {
			d.value(n, path, "is out of range")
			return
		}
		i = int64(f)
	}
	v.SetInt(i)
}

const durationForm = `^([0-9]+(\.[0-9]+)?(h|m|s|ms|us|µs|ns))+$`

var durations = regexp.MustCompile(durationForm)

func (d *decoder) duration(n *node, s *shape, path string) (time.Duration, bool) {
	switch {
	case n.kind == number:
		unit := n.text
		d.add(n, path, "= %s: is a number without a unit; write %ss or %sms", unit, unit, unit)
		return 0, false
	case !d.is(n, path, text, s.String()):
		return 0, false
	case strings.HasPrefix(n.text, "-") && durations.MatchString(n.text[1:]):
		d.notAboveZero(n, s, path, false)
		return 0, false
	case !durations.MatchString(n.text):
		d.add(n, path, "= %s: is no duration; it is numbers with units (h, m, s, ms, us, ns), as in 1m30s or 1.5s", shown(n))
		return 0, false
	}
	t, err := time.ParseDuration(n.text)
	switch {
	case err != nil:
		d.value(n, path, "is longer than a duration can be, 290 years")
	case t == 0 && strings.ContainsAny(n.text, "123456789"):
		d.value(n, path, "is shorter than a nanosecond")
	case t == 0 && !s.zero:
		d.notAboveZero(n, s, path, true)
	default:
		return t, true
	}
	return 0, false
}
