package httpmw_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// C2: a transport finds an update at once, and what is broader than what; the
// breaker stays open through it.
func TestC2_ATransportFindsAnUpdateAtOnce(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Retry = retry.Off()
		k := newKit(t, p)
		s := startKit(t, proto, k, answers(status(503, "")))
		hits := func() int {
			before := len(s.script.hits())
			_, _, _ = s.get(t, "/items/1")
			return len(s.script.hits()) - before
		}
		require.Equal(t, 1, hits())
		three := holdfast.Policy{Breaker: breaker.Off(), Retry: &retry.Policy{MaxAttempts: 3, Backoff: retry.NoWait()}}
		require.NoError(t, k.Update(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{"/items/": three, "GET /items/{id}": {}}}))
		require.Equal(t, 3, hits(), "a pattern appears, and one that inherits from it")
		require.NoError(t, k.Update(holdfast.Config{Default: p}))
		for range 4 {
			require.Equal(t, 1, hits(), "and both vanish")
		}
		require.NoError(t, k.Update(holdfast.Config{Default: p, Methods: map[string]holdfast.Policy{"GET /items/{id}": {}}}))
		require.Equal(t, 0, hits(), "open, and still so")
	})
}

// C1: the name check of an adapter in use holds for updates; the table that was
// in force stays.
func TestC1_AnUpdateChecksPatterns(t *testing.T) {
	k := newKit(t, holdfast.Policy{})
	_, err := httpmw.New(nil, k)
	require.NoError(t, err)
	bad := holdfast.Config{Methods: map[string]holdfast.Policy{"get /x": {}, "GET": {}, "/ok": {Retry: retry.Off()}}}
	err = k.Update(bad)
	require.ErrorContains(t, err, `Methods["get /x"]: the method "get" is never sent: write GET`)
	require.ErrorContains(t, err, `Methods["GET"]: is no pattern`)
	e, err := k.Explain("/ok")
	require.NoError(t, err)
	require.Equal(t, "Default", e.Entry)
}

// What is said of a group of methods is not that they are unsafe: each is what the
// wire declares it to be.
func TestPoliciesOfGroups(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"/x/": {}, "POST /y": {}, "/z": {Retry: retry.Off()}}})
	require.NoError(t, err)
	_, err = httpmw.New(nil, k)
	require.NoError(t, err)
	got := map[string][]string{}
	for _, e := range k.Policies() {
		got[e.Method] = []string{e.Safety.String(), e.SafetyFrom, e.OneAttempt}
	}
	require.Equal(t, map[string][]string{
		"":        {"unknown", "the wire (http) of each method", ""},
		"/x/":     {"unknown", "the wire (http) of each method", ""},
		"/z":      {"unknown", "the wire (http) of each method", `Retry is off in Methods["/z"]`},
		"POST /y": {"unsafe", "the wire (http)", "it is unsafe, says the wire (http)"},
	}, got)
}
