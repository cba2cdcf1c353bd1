package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// R2, R9: an idempotency key that is empty is none, for no server can tell a repeat by
// it.
func TestR2_AnEmptyIdempotencyKeyIsNone(t *testing.T) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "idempotency-key"} {
		for value, hits := range map[string]int{"": 1, " \t": 1, "k": 3} {
			t.Run(fmt.Sprintf("%s %q", name, value), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := start(t, memnet.HTTP1, quick(), answers(status(503, "")))
					req := s.request(t, t.Context(), "POST", "/", "order")
					req.Header[name] = []string{value}
					_, _, err := s.do(t, req)
					require.NoError(t, err)
					require.Len(t, s.script.hits(), hits)
				})
			})
		}
	}
}

// H4: a host that is none may be a user and a password.
func TestH4_AHostThatIsNoneIsNotRepeatedInAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, memnet.HTTP1, quick(), answers(status(200, "")))
		for _, set := range []func(*http.Request){
			func(r *http.Request) { r.Host = "user:s3cret@host" },
			func(r *http.Request) { r.URL.Host = "user:s3cret@host" },
		} {
			req := s.request(t, t.Context(), "GET", "/", "")
			set(req)
			_, err := s.transport.RoundTrip(req)
			require.ErrorContains(t, err, "is no host")
			require.NotContains(t, err.Error(), "s3cret")
		}
		require.Empty(t, s.script.hits())
	})
}

// brokenBy is a body that breaks when a context is done, as that of a proxy does whose
// client has left.
type brokenBy struct{ ctx context.Context }

func (b brokenBy) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, errors.New("the client left")
}

func (brokenBy) Close() error { return nil }

// T2: the caller's context is asked first, whatever its body says.
func TestT2_ABodyThatBreaksForItsCallersLeaving(t *testing.T) {
	for name, tc := range map[string]struct {
		ends  func(context.Context) (context.Context, context.CancelFunc)
		class call.Class
		is    error
	}{
		"leaves": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(5*time.Millisecond, cancel)
			return ctx, cancel
		}, call.Canceled, context.Canceled},
		"has no time": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 5*time.Millisecond)
		}, call.TimedOut, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				var class call.Class
				k, err := holdfast.New(holdfast.Config{Default: quick(), Hooks: holdfast.Hooks{Returned: func(_ context.Context, r holdfast.Returned) { class = r.Result.Class }}})
				require.NoError(t, err)
				s := startKit(t, proto, k, answers(status(200, "")))
				ctx, cancel := tc.ends(t.Context())
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/", brokenBy{ctx})
				require.NoError(t, err)
				_, err = s.transport.RoundTrip(req)
				require.ErrorIs(t, err, tc.is)
				require.Equal(t, tc.class, class)
			})
		})
	}
}

// O1: names come from a closed set, whatever methods a proxy's clients think of.
func TestO1_UnknownMethodsShareOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := map[string]int{}
		k, err := holdfast.New(holdfast.Config{
			Default: quick(),
			Methods: map[string]holdfast.Policy{"PROPFIND /": {}},
			Hooks:   holdfast.Hooks{Returned: func(_ context.Context, r holdfast.Returned) { names[r.Info.Method]++ }},
		})
		require.NoError(t, err)
		s := startKit(t, memnet.HTTP1, k, answers(status(200, "")))
		for i := range 50 {
			_, _, err := s.do(t, s.request(t, t.Context(), fmt.Sprintf("X%d", i), "/", ""))
			require.NoError(t, err)
		}
		for _, method := range []string{"GET", "PATCH", "PROPFIND"} {
			_, _, err := s.do(t, s.request(t, t.Context(), method, "/", ""))
			require.NoError(t, err)
		}
		require.Equal(t, map[string]int{"OTHER": 50, "GET": 1, "PATCH": 1, "PROPFIND /": 1}, names)
		require.Equal(t, "X49", s.script.hits()[49].method, "it is sent as it is")
	})
}

// O1: an attempt that its own hook ends has ended as any other.
func TestO1_AnAttemptThatAHookEndsIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried []holdfast.Tried
		p := quick()
		p.Retry = retry.Off()
		k, err := holdfast.New(holdfast.Config{Default: p, Hooks: holdfast.Hooks{Tried: func(_ context.Context, tr holdfast.Tried) { tried = append(tried, tr) }}})
		require.NoError(t, err)
		refuses := errors.New("no key to sign with")
		s := startKit(t, memnet.HTTP1, k, answers(status(200, "")), httpmw.WithAttemptHook(func(*http.Request, int) error { return refuses }))
		_, err = s.transport.RoundTrip(s.request(t, t.Context(), "POST", "/", "x"))
		require.ErrorIs(t, err, refuses)
		require.Len(t, tried, 1)
		require.Equal(t, 1, tried[0].Number)
		require.Equal(t, call.Permanent, tried[0].Result.Class)
		require.True(t, tried[0].Result.NotSent)
		require.Empty(t, s.script.hits())
	})
}
