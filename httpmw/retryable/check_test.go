package retryable_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/retryable"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/timeout"
)

// says answers the same for every attempt.
func says(again bool) retryablehttp.CheckRetry {
	return func(context.Context, *http.Response, error) (bool, error) { return again, nil }
}

func TestH5_TheClientsOwnCheckHasItsSay(t *testing.T) {
	only := func(code int) retryablehttp.CheckRetry {
		return func(_ context.Context, resp *http.Response, err error) (bool, error) {
			return err == nil && resp.StatusCode == code, nil
		}
	}
	for name, c := range map[string]struct {
		check  retryablehttp.CheckRetry
		method string
		code   int
		hits   int
	}{
		"its no":                    {says(false), "GET", 503, 1},
		"its yes":                   {says(true), "GET", 503, 3},
		"its yes, against ours":     {says(true), "GET", 501, 1},
		"to a client's fault":       {only(412), "GET", 412, 3},
		"to another client's fault": {only(412), "GET", 409, 1},
		"to a good answer":          {only(202), "GET", 202, 3},
		"but not for a POST":        {says(true), "POST", 412, 1},
		"the library's":             {nil, "GET", 503, 3},
		"the library's, with 4xx":   {nil, "GET", 404, 1},
		"with errors":               {retryablehttp.ErrorPropagatedRetryPolicy, "GET", 500, 3},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				s := start(t, proto, patient(), answers(status(c.code, "x")), retryable.WithCheckRetry(c.check))
				code, body, err := s.do(t, s.request(t, c.method, "/", ""))
				require.NoError(t, err)
				require.Equal(t, c.code, code)
				require.Equal(t, "x", body)
				require.Len(t, s.script.hits(), c.hits)
			})
		})
	}
}

// The client's own function is asked, not the one that Install leaves there.
func TestH5_TheClientsCheckIsTakenBeforeItIsReplaced(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := answers(status(503, ""))
		server := memnet.Start(t, proto, s)
		client := vendor(server.Transport)
		require.NoError(t, retryable.Install(client, kit(t, patient()), retryable.WithCheckRetry(client.CheckRetry)))
		resp, err := client.Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Len(t, s.hits(), 3)
	})
}

// It is called as go-retryablehttp calls it.
func TestH5_WhatTheCheckIsGiven(t *testing.T) {
	type key struct{}
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		asked := 0
		s := start(t, proto, patient(), answers(status(503, "")), retryable.WithCheckRetry(
			func(ctx context.Context, resp *http.Response, err error) (bool, error) {
				asked++
				require.NoError(t, err)
				require.NoError(t, ctx.Err())
				require.Equal(t, "mine", ctx.Value(key{}))
				require.Equal(t, 503, resp.StatusCode)
				return true, nil
			}))
		req := s.request(t, http.MethodGet, "/", "")
		_, _, err := s.do(t, req.WithContext(context.WithValue(t.Context(), key{}, "mine")))
		require.NoError(t, err)
		require.Equal(t, 3, asked)
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		var asked []error
		s := start(t, proto, patient(), answers(status(200, "")), retryable.WithCheckRetry(
			func(ctx context.Context, resp *http.Response, err error) (bool, error) {
				require.NoError(t, ctx.Err())
				require.Nil(t, resp)
				require.IsType(t, new(url.Error), err)
				asked = append(asked, err)
				return len(asked) < 2, errors.New("is not used")
			}))
		s.Wire.Refuse(true)
		_, _, err := s.get(t, "/?token=secret")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Len(t, asked, 2)
		require.ErrorIs(t, asked[0], syscall.ECONNREFUSED)
		require.NotContains(t, asked[0].Error(), "secret")
		require.Equal(t, 2, s.Wire.Dials())
	})
}

// An attempt that the kit's own limit ended is not one that its caller cancelled,
// which policies do not repeat.
func TestH5_ALimitIsNoCancel(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		s := start(t, proto, patient(), answers(silent, status(200, "good")), retryable.WithCheckRetry(
			func(_ context.Context, resp *http.Response, err error) (bool, error) {
				if err != nil {
					require.ErrorIs(t, err, timeout.ErrExceeded)
				}
				return err != nil && !errors.Is(err, context.Canceled), nil
			}))
		began := time.Now()
		code, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, 200, code)
		require.Equal(t, 110*time.Millisecond, time.Since(began))
	})
}

// A yes to an answer of a healthy dependency does not speak against it, and a no
// to a failure does not hide it from the breaker.
func TestH5_TheBreakerJudgesByItself(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(412, "stale")), retryable.WithCheckRetry(says(true)))
		for range 20 {
			code, _, err := s.get(t, "/")
			require.NoError(t, err)
			require.Equal(t, 412, code)
		}
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(503, "down")), retryable.WithCheckRetry(says(false)))
		for range 5 {
			_, _, err := s.get(t, "/")
			require.NoError(t, err)
		}
		_, _, err := s.get(t, "/")
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// It is an option of httpmw, too.
func TestH5_ACheckWorksForATransport(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := answers(status(412, ""), status(200, "good"))
		server := memnet.Start(t, proto, s)
		k, err := holdfast.New(holdfast.Config{Default: patient()})
		require.NoError(t, err)
		client := &http.Client{Transport: httpmw.NewTransport(server.Transport, k, retryable.WithCheckRetry(says(true)))}
		resp, err := client.Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Len(t, s.hits(), 3)
	})
}
