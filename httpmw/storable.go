package httpmw

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/answers"
	"github.com/holdfast-go/holdfast/internal/cachecontrol"
)

// storedStatuses are those of whole, good answers that RFC 9110, section 15.1,
// lets a cache keep without being told to.
var storedStatuses = [...]int{
	http.StatusOK, http.StatusNonAuthoritativeInfo, http.StatusNoContent,
	http.StatusMultipleChoices, http.StatusMovedPermanently, http.StatusPermanentRedirect,
}

// terms returns on what terms a response may be stored, and whether it may be at
// all. Its age is what the response says of it, if it has come through a cache.
func terms(resp *http.Response, s *fallback.Stale, shared bool, asked time.Duration) (e answers.Entry, ok bool) {
	says, readable := cachecontrol.Parse(resp.Header["Cache-Control"])
	switch {
	case !slices.Contains(storedStatuses[:], resp.StatusCode),
		!readable, says.NoStore, says.NoCache, says.Private,
		varies(resp.Header, "*"),
		fallback.MarkedBy(resp.Header[fallback.CacheStatusField]):
		return answers.Entry{}, false
	}
	policy := s.WithDefaults()
	e.Age = ageOf(resp.Header)
	e.Fresh = policy.Fresh
	switch {
	case shared && says.SharedMaxAge.Set:
		e.Fresh = says.SharedMaxAge.Duration
	case says.MaxAge.Set:
		e.Fresh = says.MaxAge.Duration
	case len(resp.Header["Expires"]) > 0:
		e.Fresh = expiry(resp.Header)
	}
	e.Limit = says.Limit(e.Fresh, policy.MaxStale)
	return e, e.Age+asked < e.Limit
}

// expiry is how long an answer with Expires is fresh (RFC 9111, section 4.2.1).
// What is no date has passed.
func expiry(h http.Header) time.Duration {
	expires, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return max(time.Until(expires), 0)
	}
	return max(expires.Sub(date), 0)
}

// ageOf reads how long an answer was in caches on its way, 0 if it does not say.
// That its Date is long ago proves nothing: the clocks may differ.
func ageOf(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get(fallback.AgeField))
	if value == "" || !isDigits(value) {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if limit := int64(maxDuration/time.Second) / 2; err != nil || n > limit {
		n = limit
	}
	return time.Duration(n) * time.Second
}

// varyNames returns the request's header fields that the answer depends on, in
// order and each once.
func varyNames(h http.Header) (names []string) {
	for _, v := range h["Vary"] {
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, http.CanonicalHeaderKey(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func varies(h http.Header, name string) bool { return slices.Contains(varyNames(h), name) }

// showsItsEnd reports whether a cut-off body can be told from a whole one. One that
// ends with its connection cannot (RFC 9112, section 8).
func showsItsEnd(resp *http.Response) bool {
	return resp.ContentLength >= 0 || resp.ProtoMajor >= 2 || resp.Uncompressed ||
		slices.Contains(resp.TransferEncoding, "chunked")
}

// notStored are the fields of a response that belong to its connection, its user
// or its moment: they are not part of a copy.
var notStored = [...]string{
	// of the connection
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	// of the user, and challenges to him
	"Set-Cookie", "Set-Cookie2", "Clear-Site-Data",
	"Www-Authenticate", "Authentication-Info", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
	// counted anew
	fallback.AgeField,
}

// storedHeader returns what is stored of a response's header.
func storedHeader(h http.Header) http.Header {
	stored := h.Clone()
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			stored.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range notStored {
		delete(stored, name)
	}
	return stored
}
