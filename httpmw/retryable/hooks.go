package retryable

import (
	"fmt"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"
)

// hooks runs those hooks of a client that go-retryablehttp itself runs for
// repeats only, of which it makes none any more. It reads them when they are due,
// as go-retryablehttp does.
type hooks struct{ client *retryablehttp.Client }

// attempt is a hook for [httpmw.WithAttemptHook].
func (h hooks) attempt(req *http.Request, n int) error {
	if n == 1 {
		return nil // go-retryablehttp's own
	}
	if h.client.PrepareRetry != nil {
		if err := prepare(req, h.client.PrepareRetry); err != nil {
			return err
		}
	}
	if h.client.RequestLogHook != nil {
		h.client.RequestLogHook(logger(h.client), req, n-1)
	}
	return nil
}

// prepare runs a hook that may sign the request anew, also in its URL, which the
// attempts share. go-retryablehttp hands over a body that is used up and opens
// another one afterwards, whatever the hook did to it; so do we, for what GetBody
// gives the hook may be the very reader that the attempt is to send.
func prepare(req *http.Request, hook retryablehttp.PrepareRetry) error {
	body, getBody, length := req.Body, req.GetBody, req.ContentLength
	if body != nil {
		req.Body = http.NoBody
	}
	u := *req.URL
	req.URL = &u
	err := hook(req)
	req.Body, req.GetBody, req.ContentLength = body, getBody, length
	if err != nil || body == nil || getBody == nil {
		return err
	}
	body.Close()
	req.Body, err = getBody()
	return err
}

// logger returns the client's logger in the form in which go-retryablehttp hands
// it to hooks, nil if there is none.
func logger(client *retryablehttp.Client) retryablehttp.Logger {
	switch l := client.Logger.(type) {
	case retryablehttp.LeveledLogger:
		return leveled{l}
	case retryablehttp.Logger:
		return l
	}
	return nil
}

// leveled writes a hook's lines to a logger with levels, as information.
type leveled struct{ retryablehttp.LeveledLogger }

func (l leveled) Printf(format string, args ...any) { l.Info(fmt.Sprintf(format, args...)) }
