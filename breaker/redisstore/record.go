package redisstore

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// reader takes the words of a script's reply one by one. Its first error stays.
type reader struct {
	words []any
	err   error
}

func (r *reader) text() string {
	if len(r.words) == 0 {
		r.fail("is too short")
		return ""
	}
	w := r.words[0]
	r.words = r.words[1:]
	switch w := w.(type) {
	case string:
		return w
	case int64:
		return strconv.FormatInt(w, 10)
	}
	r.fail(fmt.Sprintf("holds a %T", w))
	return ""
}

func (r *reader) uint() uint64 {
	text := r.text()
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		r.fail(fmt.Sprintf("holds %q for a number", text))
	}
	return n
}

func (r *reader) fail(how string) {
	if r.err == nil {
		r.err = fmt.Errorf("redisstore: the server's answer %s", how)
	}
}

// time reads a moment of the server's clock, or a length of time.
func (r *reader) time() time.Duration {
	return time.Duration(min(r.uint(), math.MaxInt64/1000)) * time.Microsecond
}

func (r *reader) escaped() string {
	text := r.text()
	if text == "-" {
		return ""
	}
	plain, err := url.QueryUnescape(text)
	if err != nil {
		r.fail(fmt.Sprintf("holds %q for a text", text))
	}
	return plain
}

// escape makes a text one word, without what separates the parts of a record.
func escape(text string) string {
	switch text {
	case "":
		return "-"
	case "-":
		return "%2D"
	}
	return url.QueryEscape(text)
}

// parse reads the record of a key, as it stands in prelude.lua, as of now.
func parse(key, line string, epoch uint64, now time.Duration) (breaker.Record, error) {
	r := reader{}
	for word := range strings.FieldsSeq(line) {
		r.words = append(r.words, word)
	}
	if version := r.uint(); r.err == nil && version != 1 {
		r.fail(fmt.Sprintf("is a record of version %d", version))
	}
	rec := breaker.Record{Key: key, Mark: breaker.Mark{Epoch: epoch, Revision: r.uint()}, Generation: r.uint(), Open: r.uint() == 1}
	opened := r.signed()
	rec.Cooldown = r.time()
	rec.Nth, rec.Reason = int(r.uint()), breaker.Reason(r.uint())
	rec.Good, rec.Bad = int(r.uint()), int(r.uint())
	rec.Worker, rec.Holder = r.escaped(), r.escaped()
	held, lease := r.time(), r.time()
	rec.Forced, rec.Note = r.uint() == 1, r.escaped()
	rec.Keep = r.time() - now
	reports := r.text()
	if r.err != nil || len(r.words) > 0 {
		r.fail("has too many words")
		return breaker.Record{}, r.err
	}
	if rec.Open {
		rec.Age = max(now-max(opened, now-math.MaxInt64), 0)
		rec.Left = max(rec.Cooldown-rec.Age, 0)
	} else {
		rec.Cooldown, rec.Nth, rec.Reason, rec.Worker, rec.Good, rec.Bad = 0, 0, 0, "", 0, 0
	}
	if left := lease - max(now-held, 0); rec.Holder != "" && left > 0 { // whole if the clock was put back
		rec.Lease = left
	} else {
		rec.Holder = ""
	}
	for report := range strings.SplitSeq(reports, ",") {
		_, until, ok := strings.Cut(report, "=")
		if n, err := strconv.ParseInt(until, 10, 63); ok && err == nil && time.Duration(n)*time.Microsecond > now {
			rec.Reports++
		}
	}
	return rec, nil
}

// signed is time for a moment that may lie before the clock's origin.
func (r *reader) signed() time.Duration {
	text := r.text()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
		r.fail(fmt.Sprintf("holds %q for a number", text))
		return 0
	}
	return time.Duration(n) * time.Microsecond
}
