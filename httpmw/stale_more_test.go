package httpmw_test

import (
	"context"
	"crypto/tls"
	"errors"
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
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
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

// slow is a store elsewhere, which answers nothing or fails.
type slow struct{ err error }

func (s slow) wait(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s slow) Get(ctx context.Context, _ string) ([]byte, error) { return nil, s.wait(ctx) }

func (s slow) Set(ctx context.Context, _ string, _ []byte, _ time.Duration) error { return s.wait(ctx) }

func (s slow) Delete(ctx context.Context, _ string) error { return s.wait(ctx) }

// F5: a store that fails, or is silent, makes nothing worse: a good call is not
// held up, a failed one has its own end, and says what became of the fallback.
func TestF5_AStoreThatFailsMakesNothingWorse(t *testing.T) {
	down := errors.New("no store")
	for _, s := range []slow{{}, {down}} {
		overEach(t, func(t *testing.T, proto memnet.Proto) {
			st := forAll()
			st.Store = s
			o := staleOrigin(t, proto, st, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Vary", "X-V")
				fmt.Fprint(w, "x")
			})
			begin := time.Now()
			require.Equal(t, "x", o.send(t, "GET", "/", "").body)
			require.Zero(t, time.Since(begin))
			o.down.Store(true)
			time.Sleep(time.Second)

			begin = time.Now()
			resp, err := o.client.Get(o.URL + "/")
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, "down\n", string(body))
			require.Equal(t, s.err == nil, time.Since(begin) == 100*time.Millisecond)
			require.Len(t, o.told, 1)
			require.Equal(t, fallback.KindStale, o.told[0].Kind)
			require.Error(t, o.told[0].Err)

			o.open(t)
			_, err = o.client.Get(o.URL + "/")
			require.ErrorIs(t, err, breaker.ErrOpen)
			if s.err != nil {
				require.ErrorIs(t, err, down)
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}

			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			begin = time.Now()
			_, _, err = o.do(t, o.request(t, ctx, "GET", "/", ""))
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.LessOrEqual(t, time.Since(begin), 20*time.Millisecond)
		})
	}
}

// Answer comes where nothing is stored, or the store fails.
func TestD064_StaleFirstThenComputed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []fallback.Failure
		o := staleOrigin(t, memnet.HTTP1, forAll(), parrot)
		p := &fallback.Policy{
			Stale: &fallback.Stale{Store: newStore(t), Identity: fallback.SharedByAll},
			Answer: func(ctx context.Context, f fallback.Failure) (any, error) {
				seen = append(seen, f)
				return httpmw.StaticAnswer(200, nil, []byte("[]"))(ctx, f)
			},
		}
		get := func() answer {
			req := o.request(t, holdfast.WithOverride(t.Context(), holdfast.Override{Fallback: p}), "GET", "/", "")
			resp, err := o.client.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			return answer{resp.StatusCode, string(body), resp.Header, nil}
		}
		o.down.Store(true)
		got := get()
		require.Equal(t, "[]", got.body)
		require.Equal(t, "holdfast; fwd=miss; detail=computed-for-unavailable", got.header.Get("Cache-Status"))
		require.Len(t, seen, 1)
		require.Equal(t, 503, seen[0].Code)
		require.Equal(t, 1, seen[0].Attempts)
		require.Equal(t, "GET", seen[0].Info.Method)
		o.down.Store(false)
		require.Equal(t, "GET / ", get().body)
		o.down.Store(true)
		require.True(t, get().stale())
		require.Len(t, seen, 1)
		p.Stale.Store = slow{io.ErrClosedPipe}
		require.Equal(t, "[]", get().body)
		require.Len(t, seen, 2)
		require.Equal(t, []fallback.Kind{fallback.KindComputed, fallback.KindStale, fallback.KindComputed},
			[]fallback.Kind{o.told[0].Kind, o.told[1].Kind, o.told[2].Kind})
	})
}

// A static answer that could be none is an error of the fallback's.
func TestAStaticAnswerOfNoStatus(t *testing.T) {
	_, err := httpmw.StaticAnswer(99, nil, nil)(t.Context(), fallback.Failure{})
	require.EqualError(t, err, "httpmw: StaticAnswer: status 99 is none of an answer, 200 to 599")
}

// A hedged read fills the cache as any other does.
func TestAHedgedReadFillsTheCache(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(20 * time.Millisecond)
			fmt.Fprint(w, "x")
		})
		hedge := &retry.Policy{MaxAttempts: 2, Hedge: retry.Hedge{Delay: 10 * time.Millisecond}}
		ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Retry: hedge})
		_, body, err := o.do(t, o.request(t, ctx, "GET", "/", ""))
		require.NoError(t, err)
		require.Equal(t, "x", body)
		o.down.Store(true)
		require.True(t, o.send(t, "GET", "/", "").stale())
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

// What a cache costs the requests of routes without one: nothing, though others of
// the kit have it.
func TestACacheCostsOthersNothing(t *testing.T) {
	keeps := &fallback.Policy{Stale: &fallback.Stale{Store: newStore(t), Identity: fallback.SharedByAll}}
	base := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, nil
	})
	allocations := func(methods map[string]holdfast.Policy) float64 {
		kit, err := holdfast.New(holdfast.Config{Methods: methods})
		require.NoError(t, err)
		rt, req := httpmw.NewTransport(base, kit), newRequest(t, "GET", "http://a.test/other", nil)
		return testing.AllocsPerRun(200, func() { _, _ = rt.RoundTrip(req) })
	}
	require.Equal(t, allocations(map[string]holdfast.Policy{"GET /items": {}}), allocations(map[string]holdfast.Policy{"GET /items": {Fallback: keeps}}))
}
