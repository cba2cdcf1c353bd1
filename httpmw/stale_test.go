package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// origin is a server that can be down: it answers 503 then.
type origin struct {
	*setup
	kit  *holdfast.Kit
	down atomic.Bool
	hits atomic.Int64
	mu   sync.Mutex
	told []holdfast.Fallback
}

// staleOrigin starts a server with h, and a client of it that keeps its answers
// as told.
func staleOrigin(t *testing.T, proto memnet.Proto, st fallback.Stale, h http.HandlerFunc, opts ...httpmw.Option) *origin {
	t.Helper()
	o := &origin{}
	if st.Store == nil {
		st.Store = newStore(t)
	}
	p := quick()
	p.Retry, p.Fallback = retry.Off(), &fallback.Policy{Stale: &st}
	p.Breaker = &breaker.Config{Consecutive: 1000} // it opens when a test says so
	kit, err := holdfast.New(holdfast.Config{
		Default: p,
		Methods: map[string]holdfast.Policy{"POST /search": {Safety: call.ReadOnly}},
		Hooks:   holdfast.Hooks{Fallback: o.tell},
	})
	require.NoError(t, err)
	o.kit = kit
	server := memnet.Start(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.hits.Add(1)
		if o.down.Load() {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		h(w, r)
	}))
	transport, err := httpmw.New(server.Transport, kit, opts...)
	require.NoError(t, err)
	o.setup = &setup{server, transport, &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil}
	return o
}

func (o *origin) tell(_ context.Context, f holdfast.Fallback) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, f)
}

func newStore(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.New(16 << 20)
	require.NoError(t, err)
	return store
}

// open lets the breaker open.
func (o *origin) open(t *testing.T) {
	t.Helper()
	for _, b := range o.kit.Breakers() {
		b.ForceOpen("the test asks for it")
	}
}

// answer is what a client has seen.
type answer struct {
	code   int
	body   string
	header http.Header
	err    error
}

func (a answer) stale() bool { return strings.Contains(a.header.Get("Cache-Status"), "holdfast; hit") }

func (o *origin) send(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	req := o.request(t, t.Context(), method, path, body)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(all), resp.Header, err}
}

func forAll() fallback.Stale { return fallback.Stale{Identity: fallback.SharedByAll} }

// byUser keeps the answers of each Authorization apart.
func byUser() fallback.Stale {
	return fallback.Stale{Identity: func(_ context.Context, r fallback.Request) string { return r.Get("authorization") }}
}

func parrot(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
}

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

// D068, F4: an answer's age is told, and one that is too old is not given.
func TestD068_TheAgeIsToldAndHasAnEnd(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		st := forAll()
		st.Fresh, st.MaxStale = 10*time.Second, time.Minute
		o := staleOrigin(t, proto, st, parrot)
		o.send(t, "GET", "/", "")
		o.down.Store(true)
		begin := time.Now()
		for _, c := range []struct {
			after       time.Duration
			age, status string
		}{
			{0, "0", "holdfast; hit; ttl=10; detail=unavailable"},
			{10 * time.Second, "10", "holdfast; hit; ttl=0; detail=unavailable"},
			{30 * time.Second, "30", "holdfast; hit; ttl=-20; detail=unavailable"},
			{60*time.Second - 1, "59", "holdfast; hit; ttl=-49; detail=unavailable"},
		} {
			time.Sleep(time.Until(begin.Add(c.after)))
			got := o.send(t, "GET", "/", "")
			require.Equal(t, 200, got.code, c.after)
			require.Equal(t, c.age, got.header.Get("Age"))
			require.Equal(t, c.status, got.header.Get("Cache-Status"))
			last := o.told[len(o.told)-1]
			require.Equal(t, fallback.KindStale, last.Kind)
			require.Equal(t, c.after, last.Age)
			require.Equal(t, call.Unavailable, last.After.Class)
			require.NoError(t, last.Err)
			require.Equal(t, "GET", last.Info.Method)
		}
		told := len(o.told)
		time.Sleep(time.Nanosecond)
		require.Equal(t, 503, o.send(t, "GET", "/", "").code)
		require.Len(t, o.told, told, "there was nothing to answer with")
	})
}

// The terms of a stored answer are the narrower of the policy's and its own.
func TestTheAnswerSaysHowLong(t *testing.T) {
	for cc, c := range map[string]struct{ good, bad time.Duration }{
		"max-age=20, must-revalidate":           {19 * time.Second, 20 * time.Second},
		"s-maxage=30, max-age=10":               {29 * time.Second, 30 * time.Second},
		"max-age=20, stale-if-error=15":         {34 * time.Second, 35 * time.Second},
		"max-age=5":                             {59 * time.Second, 60 * time.Second},
		"max-age=9999, stale-if-error=9999":     {59 * time.Second, 60 * time.Second},
		"public, stale-while-revalidate=5, x=1": {59 * time.Second, 60 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			st := forAll()
			st.MaxStale = time.Minute
			o := staleOrigin(t, memnet.HTTP1, st, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", cc)
				fmt.Fprint(w, "x")
			})
			o.send(t, "GET", "/", "")
			o.down.Store(true)
			time.Sleep(c.good)
			require.True(t, o.send(t, "GET", "/", "").stale(), cc)
			time.Sleep(c.bad - c.good)
			require.Equal(t, 503, o.send(t, "GET", "/", "").code, cc)
		})
	}
	synctest.Test(t, func(t *testing.T) { // Expires, Age and the time the answer took
		o := staleOrigin(t, memnet.HTTP1, forAll(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "must-revalidate")
			w.Header().Set("Expires", time.Now().Add(40*time.Second).UTC().Format(http.TimeFormat))
			w.Header().Set("Age", "7")
			w.(http.Flusher).Flush()
			time.Sleep(3 * time.Second)
			fmt.Fprint(w, "x")
		})
		o.send(t, "GET", "/", "")
		o.down.Store(true)
		got := o.send(t, "GET", "/", "")
		require.Equal(t, "10", got.header.Get("Age"))
		require.Equal(t, "holdfast; hit; ttl=30; detail=unavailable", got.header.Get("Cache-Status"))
		time.Sleep(31 * time.Second)
		require.Equal(t, 503, o.send(t, "GET", "/", "").code)
	})
}
