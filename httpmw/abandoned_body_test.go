package httpmw_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// B1: a body that nobody closes, on a context that never ends, gives its permit
// back when it is collected. Outside a bubble: the collector's functions run
// there.
func TestB1_AnAbandonedBodyIsCollected(t *testing.T) {
	p := narrow()
	k := newKit(t, p)
	s := memnet.Start(t, memnet.HTTP1, answers(dripping(100, time.Millisecond, "piece")))
	client := &http.Client{Transport: httpmw.NewTransport(s.Transport, k)}
	abandon := func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL, nil)
		require.NoError(t, err)
		_, err = client.Do(req) // nobody closes it
		require.NoError(t, err)
	}
	abandon()
	require.Eventually(t, func() bool { // real time: the collector has no virtual one
		runtime.GC()
		resp, err := client.Get(s.URL)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil
	}, 10*time.Second, time.Millisecond)
}

// selfish is a body that has the response it belongs to.
type selfish struct {
	io.Reader
	resp *http.Response
}

// B1: so is one that refers to its response, and with that to itself.
func TestB1_AnAbandonedCycleIsCollected(t *testing.T) {
	transport := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: 200}
		resp.Body = &selfish{strings.NewReader("unread"), resp}
		return resp, nil
	}), newKit(t, narrow()))
	send := func() error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://api.example.com/", nil)
		require.NoError(t, err)
		_, err = transport.RoundTrip(req) // nobody closes it
		return err
	}
	require.NoError(t, send())
	require.ErrorIs(t, send(), bulkhead.ErrFull)
	require.Eventually(t, func() bool { // real time, as above
		runtime.GC()
		return send() == nil
	}, 10*time.Second, time.Millisecond)
}
