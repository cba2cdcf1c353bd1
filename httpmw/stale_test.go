package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// D060: writes have their error, whatever the cache holds, and fill nothing.
func TestD060_AWriteIsNeverAnsweredFromTheCache(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), parrot)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			require.Equal(t, 200, o.send(t, method, "/x", "").code)
		}
		require.Equal(t, 200, o.send(t, "GET", "/x", "").code) // a write has removed it
		o.open(t)
		got := o.send(t, "GET", "/x", "")
		require.Equal(t, "GET /x ", got.body)
		require.True(t, got.stale())
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			for _, body := range []string{"", "x"} {
				got := o.send(t, method, "/x", body)
				require.ErrorIs(t, got.err, breaker.ErrOpen)
				require.ErrorContains(t, got.err, "nothing was stored or pretended")
			}
		}
		write := holdfast.WithOverride(t.Context(), holdfast.Override{Safety: call.Unsafe})
		_, _, err := o.do(t, o.request(t, write, "GET", "/x", ""))
		require.ErrorIs(t, err, breaker.ErrOpen, "a GET that is declared a write")
	})
}

// A write that has gone through takes what it may have changed out of the cache
// (RFC 9111, section 4.4); one that failed leaves it.
func TestAWriteRemovesWhatItChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			o := staleOrigin(t, memnet.HTTP1, forAll(), parrot)
			o.send(t, "GET", "/x", "")
			o.send(t, "GET", "/y", "")
			o.down.Store(true)
			require.Equal(t, 503, o.send(t, method, "/x", "").code)
			require.True(t, o.send(t, "GET", "/x", "").stale())
			o.down.Store(false)
			require.Equal(t, 200, o.send(t, method, "/x", "", "Authorization", "A").code)
			o.down.Store(true)
			require.Equal(t, 503, o.send(t, "GET", "/x", "").code)
			require.True(t, o.send(t, "GET", "/y", "").stale())
		}
	})
}

// F3: with the copy go its variants: what is stored afterwards brings none of them back.
func TestF3_AWriteRemovesEveryVariant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := staleOrigin(t, memnet.HTTP1, forAll(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Vary", "Accept-Language")
			fmt.Fprint(w, r.Header.Get("Accept-Language"))
		})
		get := func(language string) answer { return o.send(t, "GET", "/x", "", "Accept-Language", language) }
		get("en")
		get("de")
		require.Equal(t, 200, o.send(t, "PUT", "/x", "").code)
		get("en")
		o.down.Store(true)
		require.True(t, get("en").stale())
		require.Equal(t, 503, get("de").code)
	})
}

// D061: what a fallback has answered is not stored, and does not outlive the
// outage.
func TestD061_OnlyGenuineAnswersAreStored(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		var version atomic.Int64
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, version.Load()) })
		require.Equal(t, "0", o.send(t, "GET", "/x", "").body)
		o.down.Store(true)
		time.Sleep(30 * time.Second)
		for range 3 {
			got := o.send(t, "GET", "/x", "")
			require.Equal(t, "0", got.body)
			require.Equal(t, "30", got.header.Get("Age"), "it is not made young by being given")
		}
		version.Store(1)
		o.down.Store(false)
		got := o.send(t, "GET", "/x", "")
		require.Equal(t, "1", got.body)
		require.False(t, got.stale())
		require.Empty(t, got.header.Get("Age"))
		o.down.Store(true)
		require.Equal(t, "1", o.send(t, "GET", "/x", "").body)
	})
	t.Run("computed, and of a kit further in", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := quick()
			p.Retry = retry.Off()
			p.Fallback = &fallback.Policy{Answer: httpmw.StaticAnswer(200, http.Header{"X": {"y"}}, []byte("[]"))}
			inner := httpmw.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }), newKit(t, p))
			store := newStore(t)
			p.Fallback = &fallback.Policy{Stale: &fallback.Stale{Store: store, Identity: fallback.SharedByAll}}
			outer := httpmw.NewTransport(inner, newKit(t, p))
			for _, rt := range []http.RoundTripper{inner, outer} {
				resp, err := rt.RoundTrip(newRequest(t, "GET", "http://a.test/", nil))
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, "[]", string(body))
				require.Equal(t, "y", resp.Header.Get("X"))
				require.Equal(t, "holdfast; fwd=miss; detail=computed-for-unavailable", resp.Header.Get("Cache-Status"))
			}
			require.Zero(t, store.Len())
		})
	})
}

// D062: nobody gets another one's answer.
func TestD062_NoAnswerCrossesIdentities(t *testing.T) {
	me := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"), r.Header.Get("Cookie"))
	}
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		// Shared by all: who has credentials neither fills the cache nor is
		// answered from it.
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
			o := staleOrigin(t, proto, forAll(), me)
			require.Equal(t, 200, o.send(t, "GET", "/me", "", name, "A").code)
			o.down.Store(true)
			require.Equal(t, 503, o.send(t, "GET", "/me", "", name, "A").code)
			require.Equal(t, 503, o.send(t, "GET", "/me", "", name, "B").code)
			require.Equal(t, 503, o.send(t, "GET", "/me", "").code)
			o.down.Store(false)
			require.Equal(t, 200, o.send(t, "GET", "/me", "").code)
			o.down.Store(true)
			require.Equal(t, 503, o.send(t, "GET", "/me", "", name, "A").code)
			require.True(t, o.send(t, "GET", "/me", "").stale())
		}
		// With the identity in the key each has his own.
		o := staleOrigin(t, proto, byUser(), me)
		require.Equal(t, "A", o.send(t, "GET", "/me", "", "Authorization", "A").body)
		require.Equal(t, "", o.send(t, "GET", "/me", "").body)
		o.down.Store(true)
		got := o.send(t, "GET", "/me", "", "Authorization", "A")
		require.True(t, got.stale())
		require.Equal(t, "A", got.body)
		require.Equal(t, 503, o.send(t, "GET", "/me", "", "Authorization", "B").code)
		require.Equal(t, 503, o.send(t, "GET", "/me", "").code, "a name that is empty is nobody's")
	})
}

// D062: an answer that varies is given to who asks alike, and what forbids it is
// not stored.
func TestD062_VaryAndCacheControlAreObeyed(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Vary", "accept-language")
			w.Header().Add("Vary", "X-Other, Accept-Language")
			fmt.Fprint(w, r.Header.Get("Accept-Language"), r.Header.Get("X-Other"))
		})
		for _, language := range []string{"en", "de"} {
			require.Equal(t, language, o.send(t, "GET", "/", "", "Accept-Language", language).body)
		}
		o.down.Store(true)
		for _, language := range []string{"en", "de"} {
			got := o.send(t, "GET", "/", "", "Accept-Language", language)
			require.True(t, got.stale())
			require.Equal(t, language, got.body)
		}
		require.Equal(t, 503, o.send(t, "GET", "/", "", "Accept-Language", "fr").code)
		require.Equal(t, 503, o.send(t, "GET", "/", "").code)
		require.Equal(t, 503, o.send(t, "GET", "/", "", "Accept-Language", "en", "X-Other", "1").code)
		require.Equal(t, 503, o.send(t, "GET", "/", "", "Accept-Language", "en", "Accept-Language", "de").code)
	})
	for name, forbids := range map[string]http.Header{
		"vary *":              {"Vary": {"Accept, *"}},
		"no-store":            {"Cache-Control": {"max-age=60", "no-store"}},
		"private":             {"Cache-Control": {"private"}},
		"private with fields": {"Cache-Control": {`private="X"`}},
		"no-cache":            {"Cache-Control": {"no-cache"}},
		"broken":              {"Cache-Control": {`max-age=60, private="`}},
		"must-revalidate":     {"Cache-Control": {"must-revalidate"}},
		"stale-if-error=0":    {"Cache-Control": {"max-age=0, stale-if-error=0"}},
		"too old":             {"Age": {"301"}},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				var forbid atomic.Bool
				o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
					if forbid.Load() {
						for k, v := range forbids {
							w.Header()[k] = v
						}
					}
					fmt.Fprint(w, "x")
				})
				o.send(t, "GET", "/", "")
				o.down.Store(true)
				require.True(t, o.send(t, "GET", "/", "").stale())
				o.down.Store(false)
				forbid.Store(true)
				require.Equal(t, 200, o.send(t, "GET", "/", "").code)
				o.down.Store(true)
				require.Equal(t, 503, o.send(t, "GET", "/", "").code, "not even the copy of before is left")
			})
		})
	}
}
