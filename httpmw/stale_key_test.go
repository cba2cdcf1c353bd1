package httpmw_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// requireNone requires that a read gets the server's own 503.
func requireNone(t *testing.T, a answer) {
	t.Helper()
	require.NoError(t, a.err)
	require.Equal(t, 503, a.code)
	require.False(t, a.stale())
}

// D063, D062: a client's fault comes back unchanged; and what is gone or forbidden
// by now does not come back out of the cache.
func TestD063_AClientsFaultTakesTheCopysPlace(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		for _, code := range []int{400, 401, 403, 404, 410, 422} {
			says := 200
			o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(says)
				fmt.Fprint(w, "details")
			})
			o.send(t, "GET", "/", "")
			o.down.Store(true)
			require.True(t, o.send(t, "GET", "/", "").stale())
			o.down.Store(false)
			says = code
			got := o.send(t, "GET", "/", "")
			require.Equal(t, code, got.code)
			require.Equal(t, "details", got.body)
			require.Empty(t, got.header.Get("Cache-Status"))
			require.Len(t, o.told, 1)
			o.down.Store(true)
			requireNone(t, o.send(t, "GET", "/", ""))
		}
	})
}

// A caller that wants no stored answer gets none.
func TestTheRequestsCacheControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := staleOrigin(t, memnet.HTTP1, forAll(), parrot)
		o.send(t, "GET", "/", "")
		o.send(t, "GET", "/unstored", "", "Cache-Control", "no-store")
		o.down.Store(true)
		time.Sleep(20 * time.Second)
		for _, cc := range []string{"no-store", "no-cache", "max-age=0", "max-age=19", "a b"} {
			requireNone(t, o.send(t, "GET", "/", "", "Cache-Control", cc))
		}
		requireNone(t, o.send(t, "GET", "/", "", "Pragma", "no-cache"))
		requireNone(t, o.send(t, "GET", "/unstored", ""))
		require.True(t, o.send(t, "GET", "/", "", "Cache-Control", "max-age=20").stale())
	})
}

// The key holds the method, all of the URL, the host, and of a request with a body
// that body: a search by POST that the policy calls a read has its own answer.
func TestF3_TheKeyHoldsTheRequest(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), parrot)
		o.send(t, "GET", "/a?x=1", "")
		o.send(t, "POST", "/search", "lamp", "Content-Type", "text/plain")
		o.send(t, "POST", "/search", "chair", "Content-Type", "text/plain")
		o.down.Store(true)
		require.True(t, o.send(t, "GET", "/a?x=1", "").stale())
		for _, other := range []string{"/a", "/a?x=2", "/a?x=1&", "/A?x=1", "/a/?x=1", "/%61?x=1"} {
			requireNone(t, o.send(t, "GET", other, ""))
		}
		requireNone(t, o.send(t, "HEAD", "/a?x=1", ""))
		requireNone(t, o.send(t, "GET", "/a?x=1", "body"))
		require.Equal(t, "POST /search lamp", o.send(t, "POST", "/search", "lamp", "Content-Type", "text/plain").body)
		require.Equal(t, "POST /search chair", o.send(t, "POST", "/search", "chair", "Content-Type", "text/plain").body)
		requireNone(t, o.send(t, "POST", "/search", "lamp", "Content-Type", "text/plain", "Content-Language", "en"))
		requireNone(t, o.send(t, "POST", "/search", "lamp", "Content-Type", "text/plain", "Content-Encoding", "gzip"))
		requireNone(t, o.send(t, "POST", "/search", "lamp", "Content-Type", "text/plain", "Content-Type", "text/html"))
		requireNone(t, o.send(t, "POST", "/search", "lamp", "Content-Type", "text/html"))
		requireNone(t, o.send(t, "POST", "/search", "", "Content-Type", "text/plain"))

		req := o.request(t, t.Context(), "GET", "/a?x=1", "")
		req.Host = "other.test"
		code, _, err := o.do(t, req)
		require.NoError(t, err)
		require.Equal(t, 503, code)
		req = o.request(t, holdfast.WithResource(t.Context(), "part"), "GET", "/a?x=1", "")
		code, _, err = o.do(t, req)
		require.NoError(t, err)
		require.Equal(t, 503, code)
	})
}

// A body that cannot be read without disturbing anybody, or is too large, is not
// part of a key: such a request has no part in the cache.
func TestABodyThatIsNotInMemoryHasNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		st := forAll()
		st.Store = store
		o := staleOrigin(t, memnet.HTTP1, st, parrot)
		for _, body := range []io.Reader{&opaque{Reader: strings.NewReader("x")}, strings.NewReader(strings.Repeat("x", 64<<10+1))} {
			resp, err := o.client.Do(newRequest(t, "POST", o.URL+"/search", body))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			resp.Body.Close()
		}
		require.Zero(t, store.Len())
		o.send(t, "POST", "/search", strings.Repeat("x", 64<<10))
		require.Equal(t, 1, store.Len())
	})
}

// F3: what an attempt hook or a kit's hook puts into the request decides about the
// answer as much as what the caller does.
func TestF3_WhatHooksAddCounts(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		stored bool
	}{
		"credentials": {"Authorization", false},
		"an API key":  {"X-Api-Key", false},
		"varied with": {"X-Varies", false},
		"no matter":   {"X-Other", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t)
			st := forAll()
			st.Store = store
			o := staleOrigin(t, memnet.HTTP1, st, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Vary", "X-Varies")
				fmt.Fprint(w, r.Header.Get(c.header))
			}, httpmw.WithAttemptHook(func(req *http.Request, _ int) error {
				req.Header.Set(c.header, "A")
				return nil
			}))
			require.Equal(t, "A", o.send(t, "GET", "/", "").body, name)
			require.Equal(t, c.stored, store.Len() > 0, name)
		})
	}
}

// F3: each transport has its own answers, though policy and store are shared: its
// client certificate is its own. A scope that is named is shared.
func TestF3_ACacheBelongsToItsTransport(t *testing.T) {
	for _, scoped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			me := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, len(r.TLS.PeerCertificates)) }
			o := staleOrigin(t, memnet.H2, forAll(), me)
			var opts []httpmw.Option
			if scoped {
				opts = append(opts, httpmw.WithCacheScope("ours"))
			}
			client := func(with bool) *http.Client {
				base := o.Transport.Clone()
				if with {
					cert, _, err := memnet.Certificate("client.test")
					require.NoError(t, err)
					base.TLSClientConfig.Certificates = []tls.Certificate{cert}
				}
				t.Cleanup(base.CloseIdleConnections)
				return &http.Client{Transport: httpmw.NewTransport(base, o.kit, opts...)}
			}
			a, b := client(true), client(false)
			read := func(c *http.Client) (int, string) {
				resp, err := c.Get(o.URL + "/me")
				require.NoError(t, err)
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				return resp.StatusCode, string(body)
			}
			code, fresh := read(a)
			require.Equal(t, 200, code)
			o.down.Store(true)
			code, body := read(a)
			require.Equal(t, 200, code)
			require.Equal(t, fresh, body)
			code, body = read(b)
			if scoped {
				require.Equal(t, 200, code)
				require.Equal(t, fresh, body)
			} else {
				require.Equal(t, 503, code)
			}
		})
	}
	_, err := httpmw.New(nil, newKit(t, holdfast.Policy{}), httpmw.WithCacheScope(""))
	require.EqualError(t, err, "httpmw: WithCacheScope: must not be empty")
}

// Concurrent readers have full copies, each its own.
func TestEachReaderHasACopyOfItsOwn(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		content := strings.Repeat("0123456789", 20_000)
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("X-List", "a")
			fmt.Fprint(w, content)
		})
		require.Equal(t, content, o.send(t, "GET", "/", "").body)
		o.open(t)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 10 {
					resp, err := o.client.Get(o.URL + "/")
					if err != nil {
						t.Error(err)
						return
					}
					body, err := io.ReadAll(resp.Body)
					if err != nil || string(body) != content || resp.Header.Get("X-List") != "a" {
						t.Error("a copy that is not whole", err)
					}
					clear(body)
					resp.Header["X-List"][0] = "mine"
					clear(resp.Header)
					resp.Body.Close()
				}
			})
		}
		all.Wait()
	})
}

// Identity may look at the context; a panic in it leaks nothing and goes on.
func TestAnIdentityThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := true
		st := fallback.Stale{Identity: func(context.Context, fallback.Request) string {
			if panics {
				panic("who?")
			}
			return "A"
		}}
		o := staleOrigin(t, memnet.HTTP1, st, parrot)
		for range 30 { // the bulkhead has 10 permits
			req := o.request(t, t.Context(), "GET", "/", "x")
			require.PanicsWithValue(t, "who?", func() { _, _ = o.transport.RoundTrip(req) })
		}
		panics = false
		require.Equal(t, 200, o.send(t, "GET", "/", "").code)
		panics = true // a write looks for what it may have changed
		for range 30 {
			require.PanicsWithValue(t, "who?", func() { _, _ = o.transport.RoundTrip(o.request(t, t.Context(), "PUT", "/", "x")) })
		}
		panics = false
		require.Equal(t, 200, o.send(t, "GET", "/", "").code)
	})
}
