package call_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/call"
)

func TestTheZeroClassIsInvalid(t *testing.T) {
	require.False(t, call.Result{}.Class.Valid())
	require.Equal(t, "invalid", call.Class(0).String())
	require.Equal(t, "class(99)", call.Class(99).String())
	require.False(t, call.Class(99).Valid())
}

func TestClassesHaveDistinctNames(t *testing.T) {
	seen := map[string]bool{}
	for c := call.OK; c.Valid(); c++ {
		require.False(t, seen[c.String()], c.String())
		seen[c.String()] = true
	}
	require.Len(t, seen, 9)
}

func TestSafetyIsOrderedByWhatItAllows(t *testing.T) {
	for s, want := range map[call.Safety]struct {
		name       string
		repeatable bool
	}{
		call.SafetyUnknown: {"unknown", false},
		call.Unsafe:        {"unsafe", false},
		call.Idempotent:    {"idempotent", true},
		call.ReadOnly:      {"read_only", true},
		call.Safety(9):     {"safety(9)", false},
	} {
		require.Equal(t, want.name, s.String())
		require.Equal(t, want.repeatable, s.Repeatable())
	}
}
