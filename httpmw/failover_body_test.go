package httpmw_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// H2: a body that was made ready for an upstream which then refuses is the next
// round's, and not opened once more.
func TestH2_ABodyForAnUpstreamThatRefusesIsKept(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		c := simple(t, l, unhurried(), map[string]*script{
			"a": answers(status(http.StatusServiceUnavailable, ""), status(http.StatusServiceUnavailable, ""), status(http.StatusOK, "A")),
			"b": answers(status(http.StatusOK, "B")),
		}, "a", "b")
		_, text, err := c.get(t)
		require.NoError(t, err)
		require.Equal(t, "B", text)
		c.breaker(t, "b").ForceOpen("test")
		var opened []*opaque
		open := func() (io.ReadCloser, error) {
			o := &opaque{Reader: strings.NewReader("the body")}
			opened = append(opened, o)
			return o, nil
		}
		body, _ := open()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, l.host("a"), body)
		require.NoError(t, err)
		req.GetBody = open
		_, text, err = c.send(req)
		require.NoError(t, err)
		require.Equal(t, "A", text)
		require.Len(t, opened, 2, "one for each attempt")
		for _, o := range opened {
			c.settled(t, func() bool { return o.closed() == 1 }, "the transport closes them, once each")
		}
		require.Equal(t, "the body", c.scripts["a"].hits()[2].body)
	})
}
