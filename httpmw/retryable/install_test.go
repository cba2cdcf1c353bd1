package retryable_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/retryable"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

func TestH5_TheKitRunsTheLoop(t *testing.T) {
	for name, c := range map[string]struct {
		method, body string
		header       http.Header
		steps        []http.HandlerFunc
		code, hits   int
	}{
		"a good answer":       {steps: []http.HandlerFunc{status(200, "x")}, code: 200, hits: 1},
		"a read":              {steps: []http.HandlerFunc{status(503, ""), status(200, "x")}, code: 200, hits: 2},
		"attempts of the kit": {steps: []http.HandlerFunc{status(503, "x")}, code: 503, hits: 3},
		"put":                 {method: "PUT", body: "b", steps: []http.HandlerFunc{status(503, ""), status(200, "x")}, code: 200, hits: 2},
		"post":                {method: "POST", body: "b", steps: []http.HandlerFunc{status(503, "x")}, code: 503, hits: 1},
		"post with key": {method: "POST", body: "b", header: http.Header{"Idempotency-Key": {"k"}},
			steps: []http.HandlerFunc{status(503, ""), status(200, "x")}, code: 200, hits: 2},
		"client's fault":   {steps: []http.HandlerFunc{status(404, "x")}, code: 404, hits: 1},
		"not implemented":  {steps: []http.HandlerFunc{status(501, "x")}, code: 501, hits: 1},
		"too many":         {steps: []http.HandlerFunc{retryAfter(429, "1"), status(200, "x")}, code: 200, hits: 2},
		"far too many":     {steps: []http.HandlerFunc{retryAfter(429, "3600")}, code: 429, hits: 1},
		"far too long off": {steps: []http.HandlerFunc{retryAfter(503, "86400000000")}, code: 503, hits: 1},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				s := start(t, proto, patient(), answers(c.steps...))
				method := c.method
				if method == "" {
					method = http.MethodGet
				}
				req := s.request(t, method, "/", c.body)
				for name, values := range c.header {
					req.Header[name] = values
				}
				began := time.Now()
				code, body, err := s.do(t, req)
				require.NoError(t, err)
				require.Equal(t, c.code, code)
				require.NotEmpty(t, body, "readable, whatever ended the retries")
				require.Len(t, s.script.hits(), c.hits)
				for _, hit := range s.script.hits() {
					require.Equal(t, c.body, hit.body)
				}
				require.Less(t, time.Since(began), 2*time.Second, "Retry-After is capped")
			})
		})
	}
}

// D028: an open circuit is not retried, and says what it is.
func TestH5_AnOpenCircuitIsRefusedAtOnce(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(503, "down")))
		for range 2 {
			_, _, err := s.get(t, "/")
			require.NoError(t, err)
		}
		require.Len(t, s.script.hits(), 5)
		for range 100 {
			began := time.Now()
			_, _, err := s.get(t, "/")
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.Zero(t, time.Since(began))
		}
		require.Len(t, s.script.hits(), 5)
		time.Sleep(time.Second)
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Len(t, s.script.hits(), 6, "a probe is not repeated")
	})
}

// R12: the last response says why the call ended.
func TestH5_TheLastResponseSaysWhyTheCallEnded(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, patient(), answers(retryAfter(503, "3600")))
		resp, err := s.client.Get(s.URL)
		require.NoError(t, err)
		require.ErrorIs(t, httpmw.Stopped(resp), retry.ErrRetryAfter)
		require.Equal(t, "later", readAll(t, resp))
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(503, "down")))
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
		resp, err := s.client.Get(s.URL) // its second attempt opens the breaker
		require.NoError(t, err)
		require.ErrorIs(t, httpmw.Stopped(resp), breaker.ErrOpen)
		require.Equal(t, "down", readAll(t, resp))
	})
}

// An SDK that handles errors itself gets http.Client's.
func TestH5_ErrorsAreNotReworded(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		server := memnet.Start(t, proto, answers(status(200, "")))
		client := vendor(server.Transport)
		handled := 0
		client.ErrorHandler = func(resp *http.Response, err error, _ int) (*http.Response, error) {
			handled++
			return resp, errors.New("vendor: all is lost")
		}
		require.NoError(t, retryable.Install(client, kit(t, patient())))
		server.Wire.Refuse(true)
		_, err := client.Get(server.URL + "/?token=secret")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, 3, server.Wire.Dials())
		require.Zero(t, handled)
	})
}

// The connections of the calls that go well outlive those that fail.
func TestH5_IdleConnectionsAreNotThrownAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patient()
		p.Bulkhead = &bulkhead.Config{Limit: 2} // as many as the transport keeps idle
		s := start(t, memnet.HTTP1, p, answers(status(200, "good")))
		var held []*http.Response
		for range 2 {
			resp, err := s.client.Get(s.URL)
			require.NoError(t, err)
			held = append(held, resp)
		}
		for range 20 {
			_, _, err := s.get(t, "/")
			require.ErrorIs(t, err, bulkhead.ErrFull)
		}
		for _, resp := range held {
			require.Equal(t, "good", readAll(t, resp))
		}
		require.Equal(t, 2, s.Wire.Open())
		sick, err := retryablehttp.NewRequest(http.MethodGet, s.URL, nil)
		require.NoError(t, err)
		sick.SetResponseHandler(func(*http.Response) error { return errors.New("no JSON") })
		for range 20 {
			resp, err := s.client.Do(sick)
			require.EqualError(t, err, "no JSON")
			require.Equal(t, "good", readAll(t, resp))
		}
		s.client.HTTPClient.CloseIdleConnections()
		synctest.Wait()
		require.Equal(t, 2, s.Wire.Open())
		require.Equal(t, 2, s.Wire.Dials())
		require.Len(t, s.script.hits(), 22, "a handler's error is not repeated")
	})
}

// A client that others use too, http.DefaultClient above all, is copied.
func TestH5_ASharedClientIsNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memnet.Start(t, memnet.HTTP1, answers(status(503, "")))
		shared := &http.Client{Transport: server.Transport, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
		first, second := retryablehttp.NewClient(), retryablehttp.NewClient()
		first.HTTPClient, second.HTTPClient = shared, shared
		first.Logger, second.Logger = nil, nil
		require.NoError(t, retryable.Install(first, kit(t, patient())))
		require.Same(t, server.Transport, shared.Transport)
		require.Same(t, shared, second.HTTPClient)
		require.Equal(t, time.Minute, first.HTTPClient.Timeout)
		require.NotNil(t, first.HTTPClient.CheckRedirect)
		require.NoError(t, retryable.Install(second, kit(t, patient())), "it has no kit yet")
	})
	before := *http.DefaultClient
	client := retryablehttp.NewClient()
	client.HTTPClient = http.DefaultClient
	require.NoError(t, retryable.Install(client, kit(t, quick())))
	require.Equal(t, before.Transport, http.DefaultClient.Transport)
	require.NotSame(t, http.DefaultClient, client.HTTPClient)
}

func TestH5_BadInputIsRefusedAndChangesNothing(t *testing.T) {
	k := kit(t, quick())
	require.EqualError(t, retryable.Install(nil, k), "retryable: the client is nil; make one with retryablehttp.NewClient")

	client := retryablehttp.NewClient()
	inner := client.HTTPClient
	require.ErrorContains(t, retryable.Install(client, nil), "the kit is nil")
	require.ErrorContains(t, retryable.Install(client, k, httpmw.WithBufferLimit(-1)), "WithBufferLimit")
	grpcNames, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"pkg.Service": {}}})
	require.NoError(t, err)
	require.ErrorContains(t, retryable.Install(client, grpcNames), "pkg.Service")
	require.Same(t, inner, client.HTTPClient)
	require.Equal(t, 4, client.RetryMax)
	require.Nil(t, client.ErrorHandler)

	require.NoError(t, retryable.Install(client, k))
	require.EqualError(t, retryable.Install(client, k), "retryable: the client has a kit already")
}

// go-retryablehttp itself repeats nothing and rewords nothing, however the client
// was set up.
func TestH5_TheLibraryRepeatsNothing(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := answers(status(503, "down"))
		server := memnet.Start(t, proto, s)
		client := vendor(server.Transport)
		client.CheckRetry = retryablehttp.ErrorPropagatedRetryPolicy // which makes an error of a status
		require.NoError(t, retryable.Install(client, kit(t, patient())))
		require.Zero(t, client.RetryMax)
		resp, err := client.Get(server.URL)
		require.NoError(t, err)
		require.Equal(t, "down", readAll(t, resp))
		require.Len(t, s.hits(), 3)
	})
}

// The zero Client and one without HTTPClient work, over real sockets. It does not
// begin to share connections with the rest of the program.
func TestH5_AClientWithNothingSet(t *testing.T) {
	shared := http.DefaultTransport
	http.DefaultTransport = transport(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("the program's own transport")
	})
	t.Cleanup(func() { http.DefaultTransport = shared })
	s := answers(status(503, ""), status(200, "good"))
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client := new(retryablehttp.Client)
	require.NoError(t, retryable.Install(client, kit(t, patient())))
	resp, err := client.Get(server.URL)
	require.NoError(t, err)
	require.Equal(t, "good", readAll(t, resp))
	require.Len(t, s.hits(), 2)
}

// The client in the form of an *http.Client, as SDKs hand it on.
func TestH5_TheStandardClientWorks(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, patient(), answers(status(503, ""), status(200, "good")))
		client := s.client.StandardClient()
		req, err := http.NewRequest(http.MethodPut, s.URL, strings.NewReader("whole"))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.Equal(t, "good", readAll(t, resp))
		require.Len(t, s.script.hits(), 2)
		for _, hit := range s.script.hits() {
			require.Equal(t, "whole", hit.body)
		}
		// A stream without GetBody.
		req, err = http.NewRequest(http.MethodPut, s.URL, io.MultiReader(strings.NewReader("streamed")))
		require.NoError(t, err)
		resp, err = client.Do(req)
		require.NoError(t, err)
		require.Equal(t, "good", readAll(t, resp))
		require.Equal(t, "streamed", s.script.hits()[2].body)
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(200, "")))
		s.Wire.Refuse(true)
		client := s.client.StandardClient()
		for range 2 {
			_, err := client.Get(s.URL)
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		_, err := client.Get(s.URL)
		require.ErrorIs(t, err, breaker.ErrOpen)
		_, err = client.Post(s.URL, "", strings.NewReader("x"))
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, 5, s.Wire.Dials())
	})
}

// transport is a base that is a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Of a chain of redirects the hop that fails is repeated.
func TestH5_OnlyTheFailingHopIsRepeated(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, patient(), answers(
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/b", http.StatusTemporaryRedirect) },
			status(503, ""), status(200, "good"),
		))
		_, body, err := s.do(t, s.request(t, http.MethodPut, "/a", "whole"))
		require.NoError(t, err)
		require.Equal(t, "good", body)
		require.Equal(t, []string{"/a", "/b", "/b"}, s.script.paths())
		require.Equal(t, "whole", s.script.hits()[2].body)
	})
}

// Many goroutines share the client, over memory and real sockets; the race
// detector looks on.
func TestH5_TheClientIsShared(t *testing.T) {
	flaky := func() *script {
		var steps []http.HandlerFunc
		for i := range 400 {
			steps = append(steps, status([]int{200, 503}[i%2], "x"))
		}
		return answers(append(steps, status(200, "x"))...)
	}
	p := patient()
	p.Retry.MaxAttempts, p.Retry.Budget = 50, retry.NoBudget()
	many := func(t *testing.T, client *retryablehttp.Client, url string) {
		client.PrepareRetry = func(req *http.Request) error { req.Header.Set("X-Signed", "again"); return nil }
		client.RequestLogHook = func(retryablehttp.Logger, *http.Request, int) {}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 25 {
					req, err := retryablehttp.NewRequest(http.MethodPut, url, []byte("x"))
					if err != nil {
						t.Error(err)
						return
					}
					resp, err := client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode != 200 {
						t.Error(resp.Status)
					}
				}
			})
		}
		wg.Wait()
	}
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, p, flaky())
		many(t, s.client, s.URL)
	})
	t.Run("real sockets", func(t *testing.T) {
		server := httptest.NewServer(flaky())
		t.Cleanup(server.Close)
		client := vendor(&http.Transport{})
		require.NoError(t, retryable.Install(client, kit(t, p)))
		many(t, client, server.URL)
	})
}
