package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// ask makes a GET whose header has one field, spelled as it is told.
func (o *origin) ask(t *testing.T, path, name, value string) answer {
	t.Helper()
	req := o.request(t, t.Context(), http.MethodGet, path, "")
	req.Header[name] = []string{value}
	resp, err := o.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(all), resp.Header, err}
}

// D062, F3: credentials are credentials and Vary names a field however its name is
// spelled in the request.
func TestD062_NoAnswerCrossesIdentitiesInAnotherSpelling(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		o := staleOrigin(t, proto, forAll(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Vary", "X-Tenant")
			fmt.Fprint(w, r.Header)
		})
		require.Equal(t, 200, o.ask(t, "/me", "authorization", "A").code)
		require.Equal(t, 200, o.ask(t, "/me", "x-api-key", "A").code)
		require.Equal(t, 200, o.ask(t, "/ours", "x-tenant", "A").code)
		require.Equal(t, 200, o.ask(t, "/whole", "range", "bytes=0-1").code)
		o.down.Store(true)
		require.Equal(t, 503, o.send(t, "GET", "/me", "").code)
		require.Equal(t, 503, o.ask(t, "/me", "authorization", "A").code)
		require.Equal(t, 503, o.ask(t, "/ours", "x-tenant", "B").code)
		require.Equal(t, 503, o.send(t, "GET", "/ours", "").code)
		require.Equal(t, 503, o.send(t, "GET", "/whole", "").code)
		require.True(t, o.ask(t, "/ours", "X-tenant", "A").stale())
		require.True(t, o.ask(t, "/ours", "X-Tenant", "A").stale())
	})
}

// H4: so they are where an upstream is not to see them. What goes along keeps its
// spelling.
func TestH4_CredentialsInAnotherSpellingStayWithTheFront(t *testing.T) {
	base := &seen{last: "b.test"}
	client := aimed(t, base, []httpmw.Upstream{{URL: "http://a.test"}, {URL: "http://b.test"}}, httpmw.WithCredentialHeaders("X-Tenant-Token"))
	req, err := http.NewRequest(http.MethodGet, "http://a.test/x", nil)
	require.NoError(t, err)
	for _, name := range []string{"authorization", "COOKIE", "x-api-key", "x-tenant-token", "x-plain"} {
		req.Header[name] = []string{"v"}
	}
	resp, err := client.Transport.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Len(t, base.reqs, 2)
	require.Equal(t, req.Header, base.reqs[0].Header)
	require.Equal(t, http.Header{"x-plain": {"v"}}, base.reqs[1].Header)
	require.Len(t, req.Header, 5, "the caller's own is not changed")
}

// R9: the caller's own key wins, and lets his request be repeated.
func TestR9_TheCallersKeyWinsInAnotherSpelling(t *testing.T) {
	p := quick()
	p.Retry = &retry.Policy{MaxAttempts: 2, Backoff: retry.NoWait(), IdempotencyKey: true}
	k := newKit(t, p)
	base := &seen{last: "none"}
	req, err := http.NewRequest(http.MethodPost, "http://a.test/x", strings.NewReader("x"))
	require.NoError(t, err)
	req.Header["idempotency-key"] = []string{"mine"}
	resp, err := httpmw.NewTransport(base, k).RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Len(t, base.reqs, 2)
	for _, out := range base.reqs {
		require.Equal(t, http.Header{"idempotency-key": {"mine"}}, out.Header)
	}
}
