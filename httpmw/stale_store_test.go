package httpmw_test

import (
	"context"
	"errors"
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
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

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
	for _, status := range []int{-1, 0, 99, 101, 199, 600} {
		require.PanicsWithValue(t, fmt.Sprintf("httpmw: StaticAnswer: status %d is none of an answer, 200 to 599", status), func() {
			httpmw.StaticAnswer(status, nil, nil)
		})
	}
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

// elsewhere is a store in another process, which may fail to read.
type elsewhere struct {
	inner fallback.Store
	fails atomic.Bool
}

func (e *elsewhere) Get(ctx context.Context, key string) ([]byte, error) {
	if e.fails.Load() {
		return nil, io.ErrClosedPipe
	}
	return e.inner.Get(ctx, key)
}

func (e *elsewhere) Set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return e.inner.Set(ctx, key, value, ttl)
}

func (e *elsewhere) Delete(ctx context.Context, key string) error { return e.inner.Delete(ctx, key) }

// F5: a store that fails to read while an answer that varies is stored loses none of
// the others.
func TestF5_AStoreThatFailsToReadLosesNoVariant(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		st := forAll()
		e := &elsewhere{inner: newStore(t)}
		st.Store = e
		o := staleOrigin(t, proto, st, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Vary", "X-V")
			fmt.Fprint(w, r.Header.Get("X-V"))
		})
		get := func(v string) (status int, body string) {
			req := o.request(t, t.Context(), "GET", "/", "")
			req.Header.Set("X-V", v)
			status, body, err := o.do(t, req)
			require.NoError(t, err)
			synctest.Wait() // it is stored aside
			return status, body
		}
		for _, v := range []string{"a", "b"} {
			_, body := get(v)
			require.Equal(t, v, body)
		}
		e.fails.Store(true)
		_, body := get("c")
		require.Equal(t, "c", body)
		e.fails.Store(false)
		o.down.Store(true)
		for v, want := range map[string]int{"a": 200, "b": 200, "c": 503} {
			status, _ := get(v)
			require.Equal(t, want, status, v)
		}
	})
}
