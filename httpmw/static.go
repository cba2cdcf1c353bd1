package httpmw

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast/fallback"
)

// StaticAnswer returns a fallback's Answer that is always this response: an empty
// list, a default. header and body must not be changed any more; header may be
// nil. StaticAnswer panics for a status outside 200 to 599, as regexp.MustCompile does:
// call it when the program starts, and not in the outage.
func StaticAnswer(status int, header http.Header, body []byte) func(context.Context, fallback.Failure) (any, error) {
	if status < 200 || status > 599 {
		panic(fmt.Sprintf("httpmw: StaticAnswer: status %d is none of an answer, 200 to 599", status))
	}
	return func(context.Context, fallback.Failure) (any, error) {
		return &http.Response{
			Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: header, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		}, nil
	}
}
