package retryable_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// H5, R11: what go-retryablehttp runs before a repeat runs before each attempt
// beyond the first, in its order.
func TestH5_HooksRunForEachAttempt(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, patient(), answers(status(503, "x")))
		var ran []string
		s.client.PrepareRetry = func(req *http.Request) error {
			ran = append(ran, "prepare")
			req.Header.Set("X-Signed", fmt.Sprint(len(ran)))
			req.URL.RawQuery = "signature=" + fmt.Sprint(len(ran))
			body, err := io.ReadAll(req.Body)
			require.NoError(t, err)
			require.Empty(t, body, "it is the attempt's")
			again, err := req.GetBody()
			require.NoError(t, err)
			body, err = io.ReadAll(again)
			require.NoError(t, err)
			require.Equal(t, "whole", string(body))
			req.Body = nil
			return nil
		}
		s.client.RequestLogHook = func(l retryablehttp.Logger, req *http.Request, n int) {
			require.Nil(t, l)
			ran = append(ran, fmt.Sprintf("log %d %s", n, req.URL.RawQuery))
		}
		responses := 0
		s.client.ResponseLogHook = func(retryablehttp.Logger, *http.Response) { responses++ }

		req := s.request(t, http.MethodPut, "/?a=b", "whole")
		code, _, err := s.do(t, req)
		require.NoError(t, err)
		require.Equal(t, 503, code)
		require.Equal(t, []string{"log 0 a=b", "prepare", "log 1 signature=2", "prepare", "log 2 signature=4"}, ran)
		require.Equal(t, []string{"/?a=b", "/?signature=2", "/?signature=4"}, s.script.paths())
		require.Equal(t, 1, responses)
		for i, hit := range s.script.hits() {
			require.Equal(t, "whole", hit.body)
			require.Equal(t, []string{"", "2", "4"}[i], hit.header.Get("X-Signed"))
		}
		require.Equal(t, "a=b", req.URL.RawQuery, "the caller's request is not changed")
		require.Empty(t, req.Header.Get("X-Signed"))
	})
}

// A log hook that dumps the request, body and all, is a usual one: it replaces the
// body by a copy.
func TestH5_ALogHookMayDumpTheRequest(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, patient(), answers(status(503, ""), status(200, "good")))
		dumps := 0
		s.client.RequestLogHook = func(_ retryablehttp.Logger, req *http.Request, _ int) {
			dump, err := httputil.DumpRequest(req, true)
			require.NoError(t, err)
			require.Contains(t, string(dump), "whole")
			dumps++
		}
		code, _, err := s.do(t, s.request(t, http.MethodPut, "/", "whole"))
		require.NoError(t, err)
		require.Equal(t, 200, code)
		require.Equal(t, 2, dumps)
		require.Equal(t, "whole", s.script.hits()[1].body)
	})
}

// An attempt hook that is given as an option takes the place of the client's.
func TestH5_AnOptionTakesThePlaceOfTheHooks(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		var ran []int
		s := start(t, proto, patient(), answers(status(503, "")), httpmw.WithAttemptHook(func(_ *http.Request, n int) error {
			ran = append(ran, n)
			return nil
		}))
		s.client.PrepareRetry = func(*http.Request) error { return errors.New("is not called") }
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3}, ran)
	})
}

// A hook that fails ends the call with its error.
func TestH5_AFailingPrepareRetryEndsTheCall(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, patient(), answers(status(503, "")))
		expired := errors.New("the token has expired")
		s.client.PrepareRetry = func(*http.Request) error { return expired }
		_, _, err := s.do(t, s.request(t, http.MethodPut, "/", "whole"))
		require.ErrorIs(t, err, expired)
		require.Len(t, s.script.hits(), 1)
	})
}

// levels is a logger with levels.
type levels struct{ lines []string }

func (l *levels) write(level, msg string)    { l.lines = append(l.lines, level+" "+msg) }
func (l *levels) Error(msg string, _ ...any) { l.write("error", msg) }
func (l *levels) Warn(msg string, _ ...any)  { l.write("warn", msg) }
func (l *levels) Info(msg string, _ ...any)  { l.write("info", msg) }
func (l *levels) Debug(msg string, _ ...any) { l.write("debug", msg) }

// Hooks get the client's logger in either form, for the first attempt from
// go-retryablehttp and for the others from us.
func TestH5_HooksGetTheLogger(t *testing.T) {
	hook := func(l retryablehttp.Logger, _ *http.Request, n int) { l.Printf("attempt %d", n) }
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, patient(), answers(status(503, "")))
		logger := new(levels)
		s.client.Logger, s.client.RequestLogHook = logger, hook
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, []string{"debug performing request", "info attempt 0", "info attempt 1", "info attempt 2"}, logger.lines)
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, patient(), answers(status(503, "")))
		var out strings.Builder
		s.client.Logger, s.client.RequestLogHook = log.New(&out, "", 0), hook
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Contains(t, out.String(), "attempt 0\nattempt 1\nattempt 2\n")
	})
}

// H4: the kit writes no line of its own; go-retryablehttp's one line is the same
// as without the kit. No error text of ours holds a secret (D071).
func TestH4_NoSecretIsWrittenByUs(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(503, "down")))
		logger := new(levels)
		s.client.Logger = logger
		for range 2 {
			_, _, err := s.get(t, "/?token=secret")
			require.NoError(t, err)
		}
		require.Equal(t, []string{"debug performing request", "debug performing request"}, logger.lines)
		_, _, err := s.get(t, "/?token=secret")
		require.Error(t, err)
		require.NotContains(t, errors.Unwrap(err).Error(), "secret")
	})
}
