package fallback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fallback"
)

// F3: a cache policy names its Identity, and every bad field is told of.
func TestF3_AStalePolicyIsChecked(t *testing.T) {
	good := fallback.Stale{Store: struct{ fallback.Store }{}, Identity: fallback.SharedByAll}
	for want, change := range map[string]func(*fallback.Stale){
		"t: Stale.Identity: is missing: a function that names whose answer it is, or fallback.SharedByAll": func(s *fallback.Stale) { s.Identity = nil },
		"t: Stale.Store: is missing; package fallback/memory has one":                                      func(s *fallback.Stale) { s.Store = nil },
		"t: Stale.Fresh = -1s: must not be negative":                                                       func(s *fallback.Stale) { s.Fresh = -time.Second },
		"t: Stale.MaxStale = -1s: must not be negative":                                                    func(s *fallback.Stale) { s.MaxStale = -time.Second },
		"t: Stale.StoreTimeout = -1s: must not be negative":                                                func(s *fallback.Stale) { s.StoreTimeout = -time.Second },
		"t: Stale.MaxBody = -1: must not be negative":                                                      func(s *fallback.Stale) { s.MaxBody = -1 },
		"t: Stale.Fresh = 6m0s: must not be more than MaxStale = 5m0s":                                     func(s *fallback.Stale) { s.Fresh = 6 * time.Minute },
	} {
		s := good
		change(&s)
		require.EqualError(t, fallback.Policy{Stale: &s}.Check().Err("t"), want)
	}
	require.NoError(t, fallback.Policy{Stale: &good}.Check().Err("t"))
	require.Len(t, fallback.Policy{Stale: &fallback.Stale{}}.Check(), 2)
}

func TestARequestsHeaderIsFoundInEitherCase(t *testing.T) {
	for _, name := range []string{"X-User", "x-user", "X-USER"} {
		require.Equal(t, "a", fallback.Request{Header: map[string][]string{"X-User": {"a", "b"}}}.Get(name))
		require.Equal(t, "a", fallback.Request{Header: map[string][]string{"x-user": {"a", "b"}}}.Get(name))
		require.Empty(t, fallback.Request{Header: map[string][]string{"x-user": {}}}.Get(name))
		require.Empty(t, fallback.Request{}.Get(name))
	}
}
