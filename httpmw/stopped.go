package httpmw

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/retry"
)

type stoppedKey struct{}

// Stopped returns why the call that resp answers ended short of its attempts:
// budget, time, an open breaker or a full bulkhead. It is nil if the call did
// not, if resp is nil or if it does not come from a [Transport].
//
// The mark travels in resp.Request, so that it is found behind transports that
// wrap the body.
func Stopped(resp *http.Response) *retry.StoppedError {
	if resp == nil || resp.Request == nil {
		return nil
	}
	stopped, _ := resp.Request.Context().Value(stoppedKey{}).(*retry.StoppedError)
	return stopped
}

func withStopped(req *http.Request, stopped *retry.StoppedError) *http.Request {
	return req.WithContext(context.WithValue(req.Context(), stoppedKey{}, stopped))
}
