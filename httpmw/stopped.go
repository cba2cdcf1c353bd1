package httpmw

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/retry"
)

// mark is what is known of a response beside what it says itself.
type mark struct {
	stopped  *retry.StoppedError
	upstream string
}

type markKey struct{}

func markOf(resp *http.Response) mark {
	if resp == nil || resp.Request == nil {
		return mark{}
	}
	m, _ := resp.Request.Context().Value(markKey{}).(*mark)
	if m == nil {
		return mark{}
	}
	return *m
}

// Stopped returns why the call that resp answers ended short of its attempts:
// budget, time, an open breaker or a full bulkhead. It is nil if the call did
// not, if resp is nil or if it does not come from a [Transport].
//
// The mark travels in resp.Request, so that it is found behind transports that
// wrap the body.
func Stopped(resp *http.Response) *retry.StoppedError { return markOf(resp).stopped }

// AnsweredBy returns the name of the upstream that resp comes from, and behind a bar
// its resource if the list names one. It is empty if resp is nil or does not come
// from an upstream of [Failover]. The mark travels as that of [Stopped] does.
func AnsweredBy(resp *http.Response) string { return markOf(resp).upstream }

// marked returns the request with a mark for the response.
func marked(req *http.Request, m mark) *http.Request {
	if m == (mark{}) {
		return req
	}
	kept := m // m itself stays off the heap where there is nothing to say
	return req.WithContext(context.WithValue(req.Context(), markKey{}, &kept))
}
