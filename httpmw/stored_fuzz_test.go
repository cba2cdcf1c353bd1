package httpmw

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/answers"
)

// FuzzStored: a store may hold anything. Nothing breaks, and what is read as a
// response is one that could have been stored: written and read again it is the
// same.
func FuzzStored(f *testing.F) {
	resp := &http.Response{
		Status: "200 OK", StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: 4,
		Header: http.Header{"X": {"a", "b"}, "Y": {""}}, Body: io.NopCloser(strings.NewReader("body")),
	}
	good := encodeRest(encodeHead(resp), []byte("body"), http.Header{"T": {"1"}})
	for n := range good {
		f.Add(good[:n])
	}
	f.Add(good)
	resp.Uncompressed, resp.Request, resp.StatusCode = true, &http.Request{Method: http.MethodHead}, 301
	f.Add(encodeRest(encodeHead(resp), nil, nil)) // an answer to HEAD, whose length is not its body's
	resp.StatusCode = 199
	f.Add(encodeRest(encodeHead(resp), nil, nil))
	f.Add(newVariants([]string{"Accept"}).encode())
	f.Add(newVariants(nil).encode())
	f.Add([]byte{formVariants, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, ok := decodeVariants(b); ok {
			again, ok := decodeVariants(v.encode())
			require.True(t, ok)
			require.Equal(t, v.nonce, again.nonce)
			require.ElementsMatch(t, v.names, again.names)
			require.NotPanics(t, func() { v.key(answers.Key{}, http.Header{}) })
			_, ok = decodeVariants(append(bytes.Clone(b), 0))
			require.False(t, ok, "there is more behind it")
		}
		resp, ok := decodeResponse(b)
		if !ok {
			return
		}
		_, ok = decodeResponse(append(bytes.Clone(b), 0))
		require.False(t, ok, "there is more behind it")
		require.GreaterOrEqual(t, resp.StatusCode, 200)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		again, ok := decodeResponse(encodeRest(encodeHead(resp), body, resp.Trailer))
		require.True(t, ok)
		require.Equal(t, resp.StatusCode, again.StatusCode)
		require.Equal(t, storedHeader(resp.Header), again.Header)
		require.Equal(t, storedHeader(resp.Trailer), storedHeader(again.Trailer))
		require.Equal(t,
			[]any{resp.Status, resp.Proto, resp.ProtoMajor, resp.ProtoMinor, resp.Uncompressed},
			[]any{again.Status, again.Proto, again.ProtoMajor, again.ProtoMinor, again.Uncompressed})
		twice, err := io.ReadAll(again.Body)
		require.NoError(t, err)
		require.Equal(t, body, twice)
	})
}
