package telemetry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/telemetry"
)

// store is one that may fail.
type store struct {
	*breakertest.Memory
	down atomic.Bool
}

func (s *store) Changes(ctx context.Context, space string, after breaker.Mark) (breaker.Changes, error) {
	if s.down.Load() {
		return breaker.Changes{}, errors.New("connection refused")
	}
	return s.Memory.Changes(ctx, space, after)
}

// TestO1, S1: metrics show how the shared store does.
func TestO1_TheSharedStoreIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Memory: breakertest.NewMemory()}
		k, err := holdfast.New(holdfast.Config{Name: "shop", Default: quick(), Shared: &breaker.Sharing{Store: s}})
		require.NoError(t, err)
		_, collect := meter(t, telemetry.Metrics{}, k)
		use := func() {
			for range 5 {
				time.Sleep(2 * time.Second)
				_ = do(t.Context(), k, read, nil)
				synctest.Wait()
			}
		}
		use()
		got := collect()
		require.EqualValues(t, 1, got["holdfast.store.answering{kit=shop}"])
		require.EqualValues(t, 0, got["holdfast.store.failures{kit=shop}"])
		require.Len(t, got.of("holdfast.store.probes"), 3)
		s.down.Store(true)
		use()
		got = collect()
		require.EqualValues(t, 0, got["holdfast.store.answering{kit=shop}"])
		require.NotZero(t, got["holdfast.store.failures{kit=shop}"])
	})
}

func newCache(t *testing.T) *memory.Store {
	t.Helper()
	cache, err := memory.New(1 << 20)
	require.NoError(t, err)
	return cache
}

// TestO1: the age of stale answers, in seconds.
func TestO1_TheAgeOfStaleAnswersIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Fallback = &fallback.Policy{Stale: &fallback.Stale{Store: newCache(t), Identity: fallback.SharedByAll}}
		k := newKit(t, "shop", p)
		_, collect := meter(t, telemetry.Metrics{Durations: true}, k)
		code := 200
		transport := httpmw.NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x")), ContentLength: 1}, nil
		}), k)
		get := func() {
			req, err := http.NewRequest(http.MethodGet, "http://api.example.com/", nil)
			require.NoError(t, err)
			resp, err := transport.RoundTrip(req)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		get()
		time.Sleep(time.Minute)
		code = 503
		get()
		got := collect()
		require.EqualValues(t, 1, got["holdfast.fallback.age{kit=shop,method=GET,result=stale}"], got.of("holdfast.fallback"))
		require.EqualValues(t, 60, got["holdfast.fallback.age sum{kit=shop,method=GET,result=stale}"])
		require.EqualValues(t, 1, got["holdfast.fallback.served{kit=shop,method=GET}"])
	})
}
