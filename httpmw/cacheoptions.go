package httpmw

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/check"
)

// WithCacheScope lets the transport share its stale answers with all others of the
// same scope and store: with those of other processes, or of this program before
// it was started anew. Without it they are the transport's own. Only transports
// that may see each other's answers may share a scope: not those with different
// client certificates, or with base transports that sign for different users. The
// scope may not be empty.
func WithCacheScope(scope string) Option {
	return func(o *options, faults *check.Faults) {
		if scope == "" {
			faults.Add("WithCacheScope", nil, "must not be empty")
		}
		o.cacheScope = scope
	}
}

// StaticAnswer returns a fallback's Answer that is always this response: an empty
// list, a default. header and body must not be changed any more; header may be
// nil. A status outside 200 to 599 fails the fallback.
func StaticAnswer(status int, header http.Header, body []byte) func(context.Context, fallback.Failure) (any, error) {
	return func(context.Context, fallback.Failure) (any, error) {
		if status < 200 || status > 599 {
			return nil, fmt.Errorf("httpmw: StaticAnswer: status %d is none of an answer, 200 to 599", status)
		}
		return &http.Response{
			Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: header, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		}, nil
	}
}
