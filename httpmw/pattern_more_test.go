package httpmw_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
)

// A literal in a key is read unescaped, as ServeMux reads it, when layers are
// inherited.
func TestLayersComeFromABroaderPatternWrittenWithEscapes(t *testing.T) {
	k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{
		"/caf%C3%A9/":   {Retry: quick().Retry},
		"GET /café/{x}": {Bulkhead: quick().Bulkhead},
	}})
	require.NoError(t, err)
	_, err = httpmw.New(nil, k)
	require.NoError(t, err)
	e, err := k.Explain("GET /café/7")
	require.NoError(t, err)
	require.Contains(t, e.String(), `retry: on, from Methods["/caf%C3%A9/"]`)
}

// C1: "./" is no other way to write "/".
func TestC1_AHostOfDotsIsRefused(t *testing.T) {
	for _, key := range []string{"./", "../", "GET ./a", "a.test../"} {
		k, err := holdfast.New(holdfast.Config{Methods: map[string]holdfast.Policy{key: {}}})
		require.NoError(t, err)
		_, err = httpmw.New(nil, k)
		require.Error(t, err, key)
	}
}
