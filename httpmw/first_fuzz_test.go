package httpmw

import (
	"bytes"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// T4: the first event is there once a whole line of data is, however the bytes came
// in pieces, and it does not go away again.
func FuzzFirstEvent(f *testing.F) {
	for _, seed := range []string{"", "data: x\n", "data: x", ": ping\n\n", ": ping\r\rdata:\r", "event: a\ndata", "retry: 10\r\ndata:x\r\n", "\xef\xbb\xbfdata: x\n", "adata: x\n", "data\n"} {
		f.Add("text/event-stream", []byte(seed))
		f.Add("text/event-stream; charset=utf-8", []byte(seed))
		f.Add("application/json", []byte(seed))
		f.Add("Text/Event-Stream ;x", []byte(seed))
		f.Add("", []byte(seed))
	}
	line := regexp.MustCompile(`(^|[\r\n])data:[^\r\n]*[\r\n]`)
	f.Fuzz(func(t *testing.T, kind string, stream []byte) {
		resp := &http.Response{Header: http.Header{"Content-Type": {kind}}}
		events := kind == "text/event-stream" || kind == "text/event-stream; charset=utf-8"
		arrived := false
		for n := range stream {
			now := FirstEvent(resp, bytes.Clone(stream[:n+1]))
			require.False(t, arrived && !now, "it has gone again after %d bytes", n+1)
			arrived = now
		}
		switch {
		case events:
			require.Equal(t, line.Match(stream), arrived)
		case len(stream) > 0 && len(kind) < len("text/event-stream"):
			require.True(t, arrived, "in other bodies the first byte counts")
		}
	})
}
