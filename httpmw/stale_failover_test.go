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
	"github.com/holdfast-go/holdfast/breaker"
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
		kit := newKit(t, p)
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

// C2: a write during which stale answers are switched on removes the copies that
// others have made meanwhile, also where it has moved along the upstreams.
func TestC2_AWriteRemovesCopiesOfATableThatCameDuringIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		during := func() {}
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "a.test" || down.Load() {
				return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
			}
			if req.Method == http.MethodPut {
				during()
			}
			return &http.Response{StatusCode: 200, ProtoMajor: 2, ContentLength: 1, Body: io.NopCloser(strings.NewReader("x")), Header: http.Header{}}, nil
		})
		p := quick()
		p.Retry, p.Breaker = retry.Off(), breaker.Off()
		kit := newKit(t, p)
		rt, err := httpmw.Failover(base, kit, []httpmw.Upstream{{URL: "http://a.test"}, {URL: "http://b.test"}}, httpmw.WithFront("http://front.test"))
		require.NoError(t, err)
		send := func(method string) int {
			resp, err := rt.RoundTrip(newRequest(t, method, "http://front.test/here", nil))
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return resp.StatusCode
		}
		stale := p
		stale.Fallback = &fallback.Policy{Stale: &fallback.Stale{Store: newStore(t), Identity: fallback.SharedByAll}}
		during = func() {
			require.NoError(t, kit.Update(holdfast.Config{Default: stale}))
			require.Equal(t, 200, send(http.MethodGet), "as it was before the write")
			down.Store(true)
			require.Equal(t, 200, send(http.MethodGet), "there is a copy")
			down.Store(false)
		}
		require.Equal(t, 200, send(http.MethodPut))
		down.Store(true)
		require.Equal(t, 503, send(http.MethodGet), "the copy is from before the write")
	})
}
