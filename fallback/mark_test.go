package fallback_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fallback"
)

func TestAMarkIsToldFromOthers(t *testing.T) {
	for status, ours := range map[string]bool{
		"holdfast; hit; ttl=-60; detail=refused": true,
		"edge; fwd=miss, holdfast; fwd=miss":     true,
		`edge; detail="a,\",b", holdfast; hit`:   true,
		`edge; detail="a\\",holdfast; hit`:       true,
		"CDN; hit, holdfast-edge; hit":           false,
		"":                                       false,
		`edge; hit; detail="a,holdfast;b"`:       false,
		`edge; detail="\",holdfast;"`:            false,
	} {
		require.Equal(t, ours, fallback.MarkedBy([]string{"CDN; hit", status}), status)
	}
	require.False(t, fallback.MarkedBy(nil))
}
