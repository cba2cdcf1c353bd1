package credential_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/credential"
)

func TestFieldsAreTheirOwnCopy(t *testing.T) {
	fields := credential.Fields()
	require.Contains(t, fields, "authorization")
	fields[0] = "x"
	require.True(t, credential.Is("authorization"))
	require.False(t, credential.Is("x"))
}
