package httpmw_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// F5: a fallback's answer that is none for the caller is an error that names what is
// wrong, and its body is closed.
func TestF5_AFallbacksAnswerThatIsNoneIsClosed(t *testing.T) {
	broken := errors.New("half an answer")
	for name, tc := range map[string]struct {
		answer func(body *opaque) (any, error)
		says   string
		closed int
	}{
		"a nil response":          {func(*opaque) (any, error) { return (*http.Response)(nil), nil }, "returned a nil *http.Response", 0},
		"another type":            {func(*opaque) (any, error) { return 7, nil }, "returned a int, not a *http.Response", 0},
		"a response and an error": {func(b *opaque) (any, error) { return &http.Response{StatusCode: 200, Body: b}, broken }, "half an answer", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := &opaque{Reader: strings.NewReader("x")}
				p := quick()
				p.Retry = retry.Off()
				p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) { return tc.answer(body) }}
				s := start(t, memnet.HTTP1, p, answers(status(503, "down")))
				resp, err := s.transport.RoundTrip(s.request(t, t.Context(), "GET", "/", ""))
				require.NoError(t, err)
				require.Equal(t, "down", readAll(t, resp.Body), "the dependency's own answer stands")
				require.ErrorContains(t, httpmw.Stopped(resp), tc.says)
				require.Equal(t, tc.closed, body.closed())
			})
		})
	}
}

// A hook that panics once the fallback has answered leaves no body open.
func TestF5_AFallbacksAnswerIsClosedIfAHookPanics(t *testing.T) {
	for name, hooks := range map[string]holdfast.Hooks{
		"Fallback": {Fallback: func(context.Context, holdfast.Fallback) { panic("hook") }},
		"Returned": {Returned: func(context.Context, holdfast.Returned) { panic("hook") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := &opaque{Reader: strings.NewReader("x")}
				p := quick()
				p.Retry = retry.Off()
				p.Fallback = &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) {
					return &http.Response{StatusCode: 200, Body: body}, nil
				}}
				s := startTable(t, memnet.HTTP1, holdfast.Config{Default: p, Hooks: hooks}, answers(status(503, "down")))
				require.PanicsWithValue(t, "hook", func() {
					_, _ = s.transport.RoundTrip(s.request(t, t.Context(), "GET", "/", ""))
				})
				require.Equal(t, 1, body.closed())
			})
		})
	}
}

// O1: what becomes of a fallback is told before the end of its call.
func TestO1_AFallbackIsToldBeforeTheEndOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		p := quick()
		p.Retry = retry.Off()
		p.Fallback = &fallback.Policy{Answer: httpmw.StaticAnswer(200, nil, []byte("computed"))}
		s := startTable(t, memnet.HTTP1, holdfast.Config{Default: p, Hooks: holdfast.Hooks{
			Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
				return nil, func(holdfast.CallEnd) { seen = append(seen, "call") }
			},
			Returned: func(context.Context, holdfast.Returned) { seen = append(seen, "returned") },
			Fallback: func(context.Context, holdfast.Fallback) { seen = append(seen, "fallback") },
		}}, answers(status(503, "")))
		_, body, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, "computed", body)
		require.Equal(t, []string{"fallback", "returned", "call"}, seen)
	})
}
