package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// An answer of which the caller has the rest, or a part, is not stored, and leaves
// the copy where it is.
func TestPartsAndValidationsLeaveTheCopy(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"1"`)
			http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader("whole"))
		})
		require.Equal(t, "whole", o.send(t, "GET", "/", "").body)
		require.Equal(t, 304, o.send(t, "GET", "/", "", "If-None-Match", `"1"`).code)
		require.Equal(t, "ho", o.send(t, "GET", "/", "", "Range", "bytes=1-2").body)
		o.down.Store(true)
		got := o.send(t, "GET", "/", "")
		require.Equal(t, "whole", got.body)
		require.Equal(t, `"1"`, got.header.Get("Etag"))
		for _, header := range []string{"Range", "If-Range", "If-Match", "If-Unmodified-Since"} {
			requireNone(t, o.send(t, "GET", "/", "", header, "bytes=1-2"))
		}
		require.True(t, o.send(t, "GET", "/", "", "If-None-Match", `"1"`).stale(), "it asks for the whole, unless that is old")
	})
}

// What belongs to the connection, the user or the moment is not part of a copy;
// the rest is, the trailer too. A response without a body is one as well.
func TestF3_WhatIsStoredOfAHeader(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			if proto == memnet.HTTP1 {
				h.Set("Connection", "X-Hop")
				h.Set("Keep-Alive", "timeout=5")
			}
			h.Set("X-Hop", "1")
			h.Add("Set-Cookie", "session=secret")
			h.Set("WWW-Authenticate", "Basic")
			h.Set("Authentication-Info", "x")
			h.Set("Proxy-Authenticate", "Basic")
			h.Add("X-Kept", "a")
			h.Add("X-Kept", "b")
			h.Set("Cache-Status", "CDN; hit")
			h.Set("Trailer", "X-Sum")
			if r.URL.Path == "/empty" {
				h.Del("Trailer")
				w.WriteHeader(http.StatusNoContent)
				return
			}
			fmt.Fprint(w, "body")
			h.Set("X-Sum", "42")
		})
		for _, path := range []string{"/", "/empty"} {
			o.down.Store(false)
			fresh := o.send(t, "GET", path, "")
			require.Equal(t, "session=secret", fresh.header.Get("Set-Cookie"))
			o.down.Store(true)
			resp, err := o.client.Do(o.request(t, t.Context(), "GET", path, ""))
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, fresh.code, resp.StatusCode)
			require.Equal(t, fresh.body, string(body))
			for _, name := range []string{"Set-Cookie", "Www-Authenticate", "Authentication-Info", "Proxy-Authenticate", "Connection", "Keep-Alive", "Trailer"} {
				require.Empty(t, resp.Header[name], name)
			}
			if proto == memnet.HTTP1 {
				require.Empty(t, resp.Header["X-Hop"])
			}
			require.Equal(t, []string{"a", "b"}, resp.Header["X-Kept"])
			require.Equal(t, []string{"CDN; hit", "holdfast; hit; ttl=0; detail=unavailable"}, resp.Header["Cache-Status"])
			require.Equal(t, fresh.header.Get("Date"), resp.Header.Get("Date"))
			require.Equal(t, path, resp.Request.URL.Path)
			require.EqualValues(t, len(body), resp.ContentLength)
			if path == "/" {
				require.Equal(t, http.Header{"X-Sum": {"42"}}, resp.Trailer)
			}
			_, err = resp.Body.Read(make([]byte, 1))
			require.Error(t, err, "it is closed, or at its end")
		}
	})
}

// HEAD has answers of its own, with the length of what GET would bring.
func TestHeadIsStored(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1234")
		})
		o.send(t, "HEAD", "/", "")
		o.down.Store(true)
		resp, err := o.client.Do(o.request(t, t.Context(), "HEAD", "/", ""))
		require.NoError(t, err)
		defer resp.Body.Close()
		require.EqualValues(t, 1234, resp.ContentLength)
		require.Equal(t, "0", resp.Header.Get("Age"))
	})
}

// A body comes as it is sent, whatever is stored of it: one over the limit whole
// and not stored, one that the caller leaves or the server breaks off not stored.
func TestF3_OnlyWholeBodiesOfTheSizeAreStored(t *testing.T) {
	const limit = 1000
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		for name, c := range map[string]struct {
			size    int
			chunked bool
			read    int // -1 to the end
			breaks  bool
			stored  bool
		}{
			"to the limit":                {limit, false, -1, false, true},
			"to the limit, chunked":       {limit, true, -1, false, true},
			"beyond":                      {limit + 1, false, -1, false, false},
			"beyond, chunked":             {limit + 1, true, -1, false, false},
			"read by its length":          {limit, false, limit, false, true},
			"left":                        {limit, false, limit - 1, false, false},
			"left, chunked":               {limit, true, limit - 1, false, false},
			"broken off":                  {limit, false, -1, true, false},
			"broken off, chunked":         {limit, true, -1, true, false},
			"not looked at at all":        {limit, false, 0, false, false},
			"empty, without being looked": {0, false, 0, false, true},
		} {
			store := newStore(t)
			st := forAll()
			st.Store, st.MaxBody = store, limit
			content := strings.Repeat("0123456789", limit/5)[:c.size]
			o := staleOrigin(t, proto, st, func(w http.ResponseWriter, r *http.Request) {
				if !c.chunked {
					w.Header().Set("Content-Length", fmt.Sprint(c.size))
				}
				half := c.size / 2
				io.WriteString(w, content[:half])
				if c.chunked || c.breaks {
					w.(http.Flusher).Flush()
				}
				if c.breaks {
					panic(http.ErrAbortHandler)
				}
				io.WriteString(w, content[half:])
			})
			resp, err := o.client.Do(o.request(t, t.Context(), "GET", "/", ""))
			require.NoError(t, err, name)
			var got []byte
			if c.read < 0 {
				got, err = io.ReadAll(resp.Body)
				require.Equal(t, c.breaks, err != nil)
			} else {
				got = make([]byte, c.read)
				_, err = io.ReadFull(resp.Body, got)
				require.NoError(t, err)
			}
			if !c.breaks && c.read < 0 {
				require.Equal(t, content, string(got))
			}
			require.NoError(t, resp.Body.Close())
			require.Equal(t, c.stored, store.Len() == 1, name)
			if c.stored {
				o.down.Store(true)
				require.Equal(t, content, o.send(t, "GET", "/", "").body)
			}
		}
	})
}

// A body that ends with its connection might have been cut off.
func TestABodyThatEndsWithItsConnectionIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		p := quick()
		p.Fallback = &fallback.Policy{Stale: &fallback.Stale{Store: store, Identity: fallback.SharedByAll}}
		for _, chunked := range []bool{false, true} {
			rt := httpmw.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
				resp := &http.Response{StatusCode: 200, ProtoMajor: 1, ContentLength: -1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x"))}
				if chunked {
					resp.TransferEncoding = []string{"chunked"}
				}
				return resp, nil
			}), newKit(t, p))
			resp, err := rt.RoundTrip(newRequest(t, "GET", "http://a.test/", nil))
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, chunked, store.Len() == 1)
		}
	})
}

// A long body is handed on piece by piece while it is kept.
func TestABodyIsNotHeldUp(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				io.WriteString(w, "piece")
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
		})
		begin := time.Now()
		resp, err := o.client.Do(o.request(t, t.Context(), "GET", "/", ""))
		require.NoError(t, err)
		defer resp.Body.Close()
		buf := make([]byte, 5)
		for n := range 3 {
			_, err := io.ReadFull(resp.Body, buf)
			require.NoError(t, err)
			require.Equal(t, time.Duration(n)*time.Second, time.Since(begin))
		}
	})
}
