package httpmw_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

var errDown = errors.New("down")

// H1, H2: an attempt has a request of its own, unless nothing of it differs from the
// caller's. The header is the caller's own map where the kit adds nothing to it.
func TestH2_OnlyARequestThatNothingIsAddedToGoesOnAsItIs(t *testing.T) {
	once, repeated := holdfast.Policy{Retry: retry.Off(), Timeout: timeout.Off()}, holdfast.Policy{Timeout: timeout.Off()}
	limited := holdfast.Policy{Retry: retry.Off()}
	sooner, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	sign := httpmw.WithAttemptHook(func(req *http.Request, _ int) error {
		req.Header.Set("Signature", "s")
		return nil
	})
	for name, tc := range map[string]struct {
		policy holdfast.Policy
		ctx    context.Context
		body   io.Reader
		header http.Header
		opts   []httpmw.Option
		same   bool
	}{
		"nothing":                          {once, t.Context(), nil, http.Header{}, nil, true},
		"a body in memory":                 {once, t.Context(), strings.NewReader("body"), http.Header{}, nil, true},
		"a limit that is later":            {limited, sooner, nil, http.Header{}, nil, true},
		"a limit":                          {limited, t.Context(), nil, http.Header{}, nil, false},
		"the mark of a call with repeats":  {repeated, t.Context(), nil, http.Header{}, nil, false},
		"a body that is watched":           {once, t.Context(), &opaque{Reader: strings.NewReader("body")}, http.Header{}, nil, false},
		"a header where there was none":    {once, t.Context(), nil, nil, nil, false},
		"a hook that may change the clone": {once, t.Context(), nil, http.Header{}, []httpmw.Option{sign}, false},
	} {
		var sent *http.Request
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			sent = req
			return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
		})
		req, err := http.NewRequestWithContext(tc.ctx, http.MethodPut, "http://api.example.com/", tc.body)
		require.NoError(t, err)
		req.Header = tc.header
		before := *req
		resp, err := httpmw.NewTransport(base, newKit(t, tc.policy), tc.opts...).RoundTrip(req)
		require.NoError(t, err, name)
		require.Same(t, req, resp.Request, name)
		require.Equal(t, tc.same, sent == req, name)
		require.NotNil(t, sent.Header, name)
		require.Empty(t, req.Header, name)
		require.True(t, before.Body == req.Body && before.Context() == req.Context(), name)
	}
}

// H2: a body in memory can be written in one piece, as it could without the kit; but one
// that is gated not by the transport of an attempt that is over. Of a file the pieces stay
// small: who waits for one of them must not keep the next attempt from beginning.
func TestH2_MemoryIsWrittenInOnePiece(t *testing.T) {
	many := strings.Repeat("0123456789", 1000)
	file, err := os.Create(filepath.Join(t.TempDir(), "body"))
	require.NoError(t, err)
	defer file.Close()
	for name, tc := range map[string]struct {
		body  io.Reader
		whole bool
		gated bool
	}{
		"strings.Reader":      {strings.NewReader(many), true, false},
		"bytes.Reader":        {bytes.NewReader([]byte(many)), true, true},
		"bytes.Buffer":        {bytes.NewBufferString(many), true, true},
		"bytes.Reader, short": {bytes.NewReader([]byte(many[:10])), true, false},
		"bytes.Buffer, short": {bytes.NewBufferString(many[:10]), true, false},
		"a file":              {io.NopCloser(file), false, true},
	} {
		var bodies []io.ReadCloser
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			bodies = append(bodies, req.Body)
			if len(bodies) == 1 {
				return nil, errDown
			}
			w, whole := req.Body.(io.WriterTo)
			require.Equal(t, tc.whole, whole, name)
			if whole {
				var got strings.Builder
				n, err := w.WriteTo(&got)
				require.NoError(t, err)
				require.True(t, got.String() == many[:req.ContentLength], name)
				require.Equal(t, req.ContentLength, n)
			}
			require.NoError(t, req.Body.Close())
			return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
		})
		p := quick()
		p.Retry.Backoff = retry.NoWait()
		transport := httpmw.NewTransport(base, newKit(t, p))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://api.example.com/", tc.body)
		require.NoError(t, err)
		if req.GetBody == nil {
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(file), nil }
		}
		_, err = transport.RoundTrip(req)
		require.NoError(t, err, name)
		require.Len(t, bodies, 2, name)
		if !tc.gated {
			continue
		}
		if late, whole := bodies[0].(io.WriterTo); whole {
			n, err := late.WriteTo(io.Discard)
			require.Error(t, err, name)
			require.Zero(t, n)
		}
		_, err = bodies[0].Read(make([]byte, 1))
		require.ErrorContains(t, err, "is over", name)
	}
}
