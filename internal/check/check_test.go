package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/check"
)

func TestNoFaultIsNoError(t *testing.T) {
	var none check.Faults
	require.NoError(t, none.Err("pkg"))
	require.Empty(t, check.Of(nil))
}

func TestEveryFaultIsNamed(t *testing.T) {
	var part, all check.Faults
	part.Add("Rate", 1.5, "must be in (0, %d]", 1)
	all.Add("Name", nil, "is missing")
	all.In("Breaker", part)

	require.EqualError(t, part.Err("pkg"), "pkg: Rate = 1.5: must be in (0, 1]")
	err := all.Err("pkg")
	require.EqualError(t, err, "pkg: bad configuration\n\tName: is missing\n\tBreaker.Rate = 1.5: must be in (0, 1]")
	require.ErrorIs(t, err, all[1])
	require.Equal(t, all, check.Of(err))
}
