package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
)

// scene is a dependency that goes down and comes back, and a client of it with a
// cache so small that it evicts.
type scene struct {
	rt      http.RoundTripper
	version int64           // of what the dependency holds
	down    atomic.Bool     // it answers 503
	cut     atomic.Bool     // its bodies break off
	hits    atomic.Int64    // that it has answered well
	reads   map[string]read // by who has asked for what
}

// read is what the dependency has last given to a user for a path.
type read struct {
	body string
	at   time.Time
}

const (
	staleFor = 30 * time.Second
	budget   = 5000 // bytes: a few entries
)

func newScene(t *rapid.T) *scene {
	s := &scene{reads: map[string]read{}}
	store, err := memory.New(budget)
	require.NoError(t, err)
	kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Retry:   retry.Off(),
		Breaker: &breaker.Config{Consecutive: 3, Cooldown: 5 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 1},
		Fallback: &fallback.Policy{Stale: &fallback.Stale{
			Store: store, MaxStale: staleFor,
			Identity: func(_ context.Context, r fallback.Request) string {
				if r.Get("Authorization") == "" {
					return fallback.SharedByAll(context.Background(), r)
				}
				return r.Get("Authorization")
			},
		}},
	}})
	require.NoError(t, err)
	s.rt = httpmw.NewTransport(roundTrip(s.answer), kit)
	return s
}

// answer is the dependency: its body names the method, the path, the user, the
// language and the version.
func (s *scene) answer(req *http.Request) (*http.Response, error) {
	if s.down.Load() {
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, ContentLength: 0}, nil
	}
	s.hits.Add(1)
	content := fmt.Sprintf("%s %s %s %s v%d", req.Method, req.URL.Path, req.Header.Get("Authorization"), req.Header.Get("Accept-Language"), s.version)
	length := int64(len(content))
	if s.cut.Load() {
		content = content[:len(content)/2]
	}
	return &http.Response{
		StatusCode: 200, ProtoMajor: 2, ContentLength: length, Header: http.Header{"Vary": {"Accept-Language"}},
		Body: io.NopCloser(strings.NewReader(content)),
	}, nil
}

// A write is never answered from the cache, and no read gets what was not given to
// it: to the same user, in the same language, for the same path, whole, not older
// than the policy says, and marked with its age; under whatever comes of outage,
// recovery, filling and eviction.
func TestF1_NoWriteIsAnsweredAndNoReadCrosses(t *testing.T) {
	var stale, missed, wrote int
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			s := newScene(t)
			t.Repeat(map[string]func(*rapid.T){
				"": func(t *rapid.T) { // after each step
					for range 2 {
						switch s.read(t) {
						case "stale":
							stale++
						case "missed":
							missed++
						}
					}
				},
				"write": func(t *rapid.T) {
					s.write(t)
					wrote++
				},
				"go down":     func(t *rapid.T) { s.down.Store(true) },
				"come back":   func(t *rapid.T) { s.down.Store(false) },
				"break off":   func(t *rapid.T) { s.cut.Store(!s.cut.Load()) },
				"time":        func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second) },
				"new content": func(t *rapid.T) { s.version++ },
			})
		})
	})
	t.Logf("%d reads answered from the cache, %d not answered, %d writes", stale, missed, wrote)
	require.Positive(t, stale, "the cache was used")
	require.Positive(t, missed, "and had nothing")
	require.Positive(t, wrote)
}

// draw returns a request of somebody for something.
func draw(t *rapid.T, method string) *http.Request {
	req, err := http.NewRequest(method, "http://a.test/"+rapid.SampledFrom([]string{"a", "b"}).Draw(t, "path"), nil)
	require.NoError(t, err)
	if user := rapid.SampledFrom([]string{"", "A", "AB"}).Draw(t, "user"); user != "" {
		req.Header.Set("Authorization", user)
	}
	if language := rapid.SampledFrom([]string{"", "en"}).Draw(t, "language"); language != "" {
		req.Header.Set("Accept-Language", language)
	}
	return req
}

func (s *scene) read(t *rapid.T) string {
	req := draw(t, "GET")
	who := fmt.Sprintf("GET %s %s %s", req.URL.Path, req.Header.Get("Authorization"), req.Header.Get("Accept-Language"))
	before := s.hits.Load()
	resp, err := s.rt.RoundTrip(req)
	if err != nil {
		require.ErrorIs(t, err, breaker.ErrOpen)
		return "missed"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	marked := resp.Header.Get("Cache-Status") != ""
	switch {
	case resp.StatusCode == 503:
		require.False(t, marked)
		return "missed"
	case s.hits.Load() > before:
		require.False(t, marked, "it is the dependency's own")
		if int64(len(body)) == resp.ContentLength {
			s.reads[who] = read{string(body), time.Now()}
		}
		return "fresh"
	}
	require.True(t, marked)
	last, ok := s.reads[who]
	require.True(t, ok, "%q was never given to %q", body, who)
	require.Equal(t, last.body, string(body))
	age := time.Since(last.at)
	require.Less(t, age, staleFor)
	require.Equal(t, fmt.Sprint(int(age/time.Second)), resp.Header.Get("Age"))
	return "stale"
}

func (s *scene) write(t *rapid.T) {
	req := draw(t, rapid.SampledFrom([]string{"POST", "PUT", "PATCH", "DELETE", "LOCK"}).Draw(t, "method"))
	before := s.hits.Load()
	resp, err := s.rt.RoundTrip(req)
	if err != nil {
		var own *fallback.WriteError
		require.ErrorAs(t, err, &own)
		require.False(t, own.Sent)
		require.Equal(t, before, s.hits.Load())
		return
	}
	defer resp.Body.Close()
	require.Empty(t, resp.Header.Get("Cache-Status"))
	require.Equal(t, resp.StatusCode == 200, s.hits.Load() == before+1, "it is done if the dependency has done it")
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
}
