package enum_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/enum"
)

func TestAValueWithoutANameIsItsNumber(t *testing.T) {
	names := []string{"", "one"}
	for v, want := range map[uint8]string{0: "kind(0)", 1: "one", 2: "kind(2)", 255: "kind(255)"} {
		require.Equal(t, want, enum.Name(names, v, "kind"))
	}
}
