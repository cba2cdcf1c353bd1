package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/fallback/memory"
	"github.com/holdfast-go/holdfast/httpmw"
)

// Explain tells what a read is answered with, and that a write has its error.
func TestExplainTellsOfTheFallback(t *testing.T) {
	store, err := memory.New(1 << 20)
	require.NoError(t, err)
	stale := func(who func(context.Context, fallback.Request) string) *fallback.Policy {
		return &fallback.Policy{
			Stale:  &fallback.Stale{Store: store, Identity: who, MaxStale: time.Minute},
			Answer: fallback.Static(nil),
		}
	}
	k, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{Fallback: stale(fallback.SharedByAll)},
		Methods: map[string]holdfast.Policy{
			"GET /me": {Fallback: stale(func(context.Context, fallback.Request) string { return "A" })},
			"GET /no": {Fallback: fallback.Off()},
		},
	})
	require.NoError(t, err)
	_ = httpmw.NewTransport(nil, k)
	const computed = "Fallback.Answer: a computed one"
	for method, want := range map[string][]string{
		"GET /other":  {"Fallback.Stale: an earlier answer, shared by all, younger than 1m0s", computed},
		"GET /me":     {"Fallback.Stale: an earlier answer, kept for each identity, younger than 1m0s", computed},
		"GET /no":     nil,
		"POST /other": nil,
	} {
		e, err := k.Explain(method)
		require.NoError(t, err)
		require.Equal(t, want, e.Fallbacks, method)
		for _, f := range want {
			require.Contains(t, e.String(), "\n  after a failure: "+f+"\n")
		}
		if method == "POST /other" {
			require.Contains(t, e.String(), "\n  after a failure: the error; only a read is answered otherwise, and it is unsafe\n")
		}
		if method == "GET /no" {
			require.NotContains(t, e.String(), "after a failure")
		}
	}

	k, err = holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{
		"select": {Safety: call.ReadOnly, Fallback: stale(fallback.SharedByAll)},
	}})
	require.NoError(t, err)
	e, err := k.Explain("select")
	require.NoError(t, err)
	require.Equal(t, []string{computed}, e.Fallbacks, "Do has no cache")
}

// F3: construction fails and names the field; an override fails its call.
func TestF3_ACachePolicyNamesItsIdentity(t *testing.T) {
	store, err := memory.New(1 << 20)
	require.NoError(t, err)
	nameless := &fallback.Policy{Stale: &fallback.Stale{Store: store}}
	const what = "Fallback.Stale.Identity: is missing: a function that names whose answer it is, or fallback.SharedByAll"
	_, err = holdfast.New(holdfast.Config{Default: holdfast.Policy{Fallback: nameless}})
	require.EqualError(t, err, "holdfast: Default."+what)
	_, err = holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{"GET /": {Fallback: nameless}}})
	require.EqualError(t, err, `holdfast: Methods["GET /"].`+what)
	k, err := holdfast.New(holdfast.Config{})
	require.NoError(t, err)
	ctx := holdfast.WithOverride(t.Context(), holdfast.Override{Fallback: nameless})
	_, err = do(ctx, k, read, answers(ok))
	require.EqualError(t, err, "holdfast: Override."+what)
}
