package holdfast_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
)

// Before an adapter has read the names nobody knows what the wire declares, and the
// explanation says so instead of the opposite of what will happen.
func TestAnExplanationBeforeAnyAdapterSaysSo(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{
		"GET /items/{id}": {Retry: &retry.Policy{MaxAttempts: 5}},
		"POST /search":    {Safety: call.ReadOnly},
		"/once/":          {Retry: retry.Off()},
	}})
	require.NoError(t, err)
	explain := func(method string) holdfast.Explanation {
		e, err := k.Explain(method)
		require.NoError(t, err)
		return e
	}
	e := explain("GET /items/lamp")
	require.True(t, e.Unread)
	require.Empty(t, e.Wire)
	require.Equal(t, "Default", e.Entry)
	require.Equal(t, "nobody yet: no adapter has read the names", e.SafetyFrom)
	require.Equal(t, "no adapter has read the names yet, and only the wire may declare that GET /items/lamp may be repeated; "+
		"for Do set Safety in its entry of Config.Methods, or in the call's Info", e.OneAttempt)
	require.Contains(t, e.String(), "\n  unread: neither httpmw nor grpcmw has been given the kit; an adapter may find another entry, and knows what the wire declares\n")
	e = explain("POST /search")
	require.True(t, e.Unread)
	require.Equal(t, []any{call.ReadOnly, `Methods["POST /search"]`, ""}, []any{e.Safety, e.SafetyFrom, e.OneAttempt})
	require.Equal(t, `Retry is off in Methods["/once/"]`, explain("/once/").OneAttempt)
	require.True(t, k.Policies()[0].Unread)

	// To have asked changes nothing: the adapter alone reads the names from now on.
	_ = httpmw.NewTransport(http.DefaultTransport, k)
	e = explain("GET /items/lamp")
	require.False(t, e.Unread)
	require.Equal(t, []any{"http", `Methods["GET /items/{id}"]`, call.ReadOnly, ""}, []any{e.Wire, e.Entry, e.Safety, e.OneAttempt})
	require.NotContains(t, e.String(), "unread")
	for _, e := range k.Policies() {
		require.Equal(t, "http", e.Wire)
		require.False(t, e.Unread)
	}
	_, err = k.Explain("nonsense")
	require.EqualError(t, err, `holdfast: "nonsense" is no name for http, and Config.Methods has no such entry`)
	_, err = k.Explain("/once/")
	require.NoError(t, err)
	for _, e := range k.Policies() {
		require.Equal(t, "http", e.Wire, "an entry's own name is explained without Do")
	}
}

// What comes with an error is no explanation of anything.
func TestTheZeroExplanationIsEmpty(t *testing.T) {
	require.Empty(t, holdfast.Explanation{}.String())
}
