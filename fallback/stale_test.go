package fallback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/check"
)

// F3: a cache policy names its Identity, and every bad field is told of.
func TestF3_AStalePolicyIsChecked(t *testing.T) {
	good := fallback.Stale{Store: struct{ fallback.Store }{}, Identity: fallback.SharedByAll}
	for want, change := range map[string]func(*fallback.Stale){
		"fallback: Stale.Identity: is missing: a function that names whose answer it is, or fallback.SharedByAll": func(s *fallback.Stale) { s.Identity = nil },
		"fallback: Stale.Store: is missing; package fallback/memory has one":                                      func(s *fallback.Stale) { s.Store = nil },
		"fallback: Stale.Fresh = -1s: must not be negative":                                                       func(s *fallback.Stale) { s.Fresh = -time.Second },
		"fallback: Stale.MaxStale = -1s: must not be negative":                                                    func(s *fallback.Stale) { s.MaxStale = -time.Second },
		"fallback: Stale.StoreTimeout = -1s: must not be negative":                                                func(s *fallback.Stale) { s.StoreTimeout = -time.Second },
		"fallback: Stale.MaxBody = -1: must not be negative":                                                      func(s *fallback.Stale) { s.MaxBody = -1 },
		"fallback: Stale.Fresh = 6m0s: must not be more than MaxStale = 5m0s":                                     func(s *fallback.Stale) { s.Fresh = 6 * time.Minute },
	} {
		s := good
		change(&s)
		require.EqualError(t, fallback.Policy{Stale: &s}.Check(), want)
	}
	require.NoError(t, fallback.Policy{Stale: &good}.Check())
	require.Len(t, check.Of(fallback.Policy{Stale: &fallback.Stale{}}.Check()), 2)
}

func TestARequestsHeaderIsFoundInEitherCase(t *testing.T) {
	for _, name := range []string{"X-User", "x-user", "X-USER"} {
		require.Equal(t, "a", fallback.Request{Header: map[string][]string{"X-User": {"a", "b"}}}.Get(name))
		require.Equal(t, "a", fallback.Request{Header: map[string][]string{"x-user": {"a", "b"}}}.Get(name))
		require.Empty(t, fallback.Request{Header: map[string][]string{"x-user": {}}}.Get(name))
		require.Empty(t, fallback.Request{}.Get(name))
	}
}
