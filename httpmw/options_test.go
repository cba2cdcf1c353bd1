package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// D039, R4: Retry-After is a lower bound on 425, 429 and 503, and on what else the
// user names; beyond the cap the response comes back at once.
func TestD039_RetryAfterIsHeededWhereItMeansSo(t *testing.T) {
	asking := func(code int, wait string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", wait)
			w.WriteHeader(code)
		}
	}
	for name, tc := range map[string]struct {
		code     int
		wait     string
		opts     []httpmw.Option
		least    time.Duration
		most     time.Duration
		attempts int
	}{
		"429":                {429, "3", nil, 3 * time.Second, 4 * time.Second, 2},
		"503":                {503, "3", nil, 3 * time.Second, 4 * time.Second, 2},
		"425":                {425, "3", nil, 3 * time.Second, 4 * time.Second, 2},
		"500":                {500, "3", nil, 10 * time.Millisecond, 10 * time.Millisecond, 2},
		"500 by option":      {500, "3", []httpmw.Option{httpmw.WithRetryAfterOn(500)}, 3 * time.Second, 4 * time.Second, 2},
		"broken":             {503, "soon", nil, 10 * time.Millisecond, 10 * time.Millisecond, 2},
		"beyond the cap":     {503, "9999999999", nil, 0, 0, 1},
		"a date":             {503, "date", nil, 4 * time.Second, 6 * time.Second, 2},
		"a date far too far": {503, "2099", nil, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				wait := tc.wait
				switch wait {
				case "date":
					wait = time.Now().Add(5 * time.Second).UTC().Format(http.TimeFormat)
				case "2099":
					wait = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)
				}
				p := quick()
				p.Retry.RetryAfterCap = time.Minute
				s := start(t, proto, p, answers(asking(tc.code, wait), status(200, "")), tc.opts...)
				begin := time.Now()
				resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.GreaterOrEqual(t, time.Since(begin), tc.least)
				require.LessOrEqual(t, time.Since(begin), tc.most)
				require.Len(t, s.script.hits(), tc.attempts)
				if tc.attempts == 1 {
					require.Equal(t, tc.code, resp.StatusCode)
					require.ErrorIs(t, httpmw.Stopped(resp), retry.ErrRetryAfter)
				}
			})
		})
	}
	k := newKit(t, holdfast.Policy{})
	_, err := httpmw.New(nil, k, httpmw.WithRetryAfterOn(200), httpmw.WithFirstMessage(nil), httpmw.WithBodyTooLongHook(nil), httpmw.WithPanicHandler(nil))
	require.ErrorContains(t, err, "WithRetryAfterOn = 200: is no status of a failure")
	require.ErrorContains(t, err, "WithFirstMessage: must not be nil")
	require.ErrorContains(t, err, "WithBodyTooLongHook: must not be nil")
	require.ErrorContains(t, err, "WithPanicHandler: must not be nil")
}

// C1: every bad option is named, as in grpcmw, the zero one and one for another
// constructor too.
func TestC1_EveryBadOptionIsNamed(t *testing.T) {
	k := newKit(t, holdfast.Policy{})
	_, err := httpmw.New(nil, k, httpmw.Option{}, httpmw.WithFront("http://front"), httpmw.WithCacheScope(""))
	require.ErrorContains(t, err, "Option[0]: is the zero Option")
	require.ErrorContains(t, err, "WithFront: is for Failover")
	require.ErrorContains(t, err, "WithCacheScope: must not be empty")
	_, err = httpmw.Failover(nil, k, []httpmw.Upstream{{URL: "http://a.test"}}, httpmw.WithFront("http://front"), httpmw.Option{})
	require.EqualError(t, err, "httpmw: Option[1]: is the zero Option")
}

// H2: that a body was too long to be repeated is told, once for each attempt that
// would have been repeated else.
func TestH2_ABodyTooLongIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		size   int
		code   int
		told   int
	}{
		"too long":                   {http.MethodPut, 11, 503, 1},
		"just not":                   {http.MethodPut, 10, 503, 0},
		"too long, but good":         {http.MethodPut, 11, 200, 0},
		"too long, not to be anyway": {http.MethodPost, 11, 503, 0},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				var told []string
				s := start(t, proto, quick(), answers(status(tc.code, ""), status(200, "")), httpmw.WithBufferLimit(10),
					httpmw.WithBodyTooLongHook(func(method string, limit int64) { told = append(told, fmt.Sprint(method, " ", limit)) }))
				req := s.request(t, t.Context(), tc.method, "/", "")
				req.Body = io.NopCloser(readerFunc(strings.NewReader(strings.Repeat("x", tc.size)).Read))
				_, _, err := s.do(t, req)
				require.NoError(t, err)
				require.Len(t, told, tc.told)
				if tc.told > 0 {
					require.Equal(t, tc.method+" 10", told[0])
				}
			})
		})
	}
}

// T4: keep-alive lines are no message; the first event's data is (D066).
func TestT4_TheFirstEventCounts(t *testing.T) {
	events := func(lines ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			for _, line := range lines {
				_, _ = io.WriteString(w, line)
				w.(http.Flusher).Flush()
				select {
				case <-time.After(40 * time.Millisecond):
				case <-r.Context().Done():
					return
				}
			}
		}
	}
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := narrow()
		p.Timeout = &timeout.Limits{FirstMessage: 100 * time.Millisecond}
		s := start(t, proto, p, answers(
			events(": wait\n\n", ": wait\n\n", ": wait\n\n", "data: too late\n\n"),
			events(": wait\n\n", "event: token\nda", "ta: in time\n\n", "data: more\n\n"),
		), httpmw.WithFirstMessage(httpmw.FirstEvent))
		begin := time.Now()
		resp, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		require.Equal(t, 190*time.Millisecond, time.Since(begin), "limit, wait, and the data of the second")
		require.Equal(t, ": wait\n\nevent: token\ndata: in time\n\ndata: more\n\n", readAll(t, resp.Body))
		require.Len(t, s.script.hits(), 2)
	})
	plain := &http.Response{Header: http.Header{"Content-Type": {"text/plain"}}}
	require.True(t, httpmw.FirstEvent(plain, []byte("x")))
	stream := &http.Response{Header: http.Header{"Content-Type": {"Text/Event-Stream"}}}
	for read, want := range map[string]bool{
		"": false, ":\n": false, "data: x": false, "data: x\n": true, "data:\r": true, ":\r\ndata: x\r\n": true,
		"event: data:\n": false, "id: 1\nretry: 5\n\n": false,
	} {
		require.Equal(t, want, httpmw.FirstEvent(stream, []byte(read)), "%q", read)
	}
}

// B8: the pause that the server asked for lengthens the cooldown of the breaker
// that its answer opened, within the cap.
func TestB8_RetryAfterLengthensTheCooldown(t *testing.T) {
	for asked, want := range map[string]time.Duration{"3": 3 * time.Second, "3600": 6 * time.Second, "": time.Second} {
		overEach(t, func(t *testing.T, proto memnet.Proto) {
			p := quick()
			p.Retry = retry.Off()
			p.Breaker.MaxCooldown = 6 * time.Second
			s := start(t, proto, p, answers(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", asked)
				w.WriteHeader(503)
			}))
			for range 5 {
				_, _, err := s.get(t, "/")
				require.NoError(t, err)
			}
			_, _, err := s.get(t, "/")
			var open *breaker.OpenError
			require.ErrorAs(t, err, &open)
			require.Equal(t, want, open.RetryAfter())
		})
	}
}
