package httpmw_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
)

// With several upstreams the copies are of what the caller asked for, whoever has
// answered; they show the front's places, and a write that another upstream has
// carried out removes them.
func TestCopiesOfSeveralUpstreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second atomic.Bool // they are down
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "a.test" && first.Load() || req.URL.Host == "b.test" && second.Load() {
				return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
			}
			return &http.Response{
				StatusCode: 301, ProtoMajor: 2, ContentLength: 1, Body: io.NopCloser(strings.NewReader("x")), Request: req,
				Header: http.Header{"Location": {"http://" + req.URL.Host + "/there"}},
			}, nil
		})
		p := quick()
		p.Retry = retry.Off()
		p.Fallback = &fallback.Policy{Stale: &fallback.Stale{Store: newStore(t), Identity: fallback.SharedByAll}}
		kit, err := holdfast.New(holdfast.Config{Default: p})
		require.NoError(t, err)
		rt, err := httpmw.Failover(base, kit, []httpmw.Upstream{{URL: "http://a.test"}, {URL: "http://b.test"}}, httpmw.WithFront("http://front.test"))
		require.NoError(t, err)
		send := func(method string) (int, http.Header) {
			resp, err := rt.RoundTrip(newRequest(t, method, "http://front.test/here", nil))
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return resp.StatusCode, resp.Header
		}
		first.Store(true) // the second answers
		code, fresh := send("GET")
		require.Equal(t, 301, code)
		require.Equal(t, "http://front.test/there", fresh.Get("Location"))
		second.Store(true)
		code, stale := send("GET")
		require.Equal(t, 301, code)
		require.Equal(t, "0", stale.Get("Age"))
		require.Equal(t, "http://front.test/there", stale.Get("Location"))

		second.Store(false)
		code, _ = send("PUT")
		require.Equal(t, 301, code, "the second has carried it out")
		second.Store(true)
		code, _ = send("GET")
		require.Equal(t, 503, code)
	})
}
