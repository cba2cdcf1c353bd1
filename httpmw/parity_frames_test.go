package httpmw_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memnet/memframes"
)

// playFrames starts a server of bare HTTP/2 frames, and returns a transport to it.
func playFrames(t *testing.T, steps ...memframes.Step) (*memframes.Server, *http.Transport) {
	s := memframes.Serve(t, "80", steps...)
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return s, &http.Transport{DialContext: s.Wire.DialContext, Protocols: p}
}

// okLate answers once the request's body has come.
var okLate = memframes.Step{Answer: memframes.Headers(true, ":status", "200"), Late: true}

// D069, H2, H6: a server that sends a stream or connection away before it has
// processed anything gets the request again, whole; net/http does that, and with
// the kit nothing of it is lost.
func TestD069_ARequestThatIsSentAwayComesWhole(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1024)
	memory := func() io.Reader { return strings.NewReader(big) }
	for name, c := range map[string]struct {
		away memframes.Answer
		late bool
	}{
		"GOAWAY":                      {memframes.GoAway(http2.ErrCodeNo), false},
		"GOAWAY once the body came":   {memframes.GoAway(http2.ErrCodeNo), true},
		"REFUSED_STREAM":              {memframes.Reset(http2.ErrCodeRefusedStream), false},
		"REFUSED once the body came":  {memframes.Reset(http2.ErrCodeRefusedStream), true},
		"PROTOCOL_ERROR on the first": {memframes.Reset(http2.ErrCodeProtocol), false},
	} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodGet} {
			t.Run(name+"/"+method, func(t *testing.T) {
				play := func(t *testing.T, over func(http.RoundTripper) http.RoundTripper) (seen []string) {
					synctest.Test(t, func(t *testing.T) {
						s, transport := playFrames(t, memframes.Step{Answer: c.away, Late: c.late}, okLate)
						began := time.Now()
						resp, err := over(transport).RoundTrip(newRequest(t, method, "http://"+memnet.Host+"/", memory()))
						require.NoError(t, err)
						require.Equal(t, 200, resp.StatusCode)
						require.NoError(t, resp.Body.Close())
						require.Less(t, time.Since(began), 2*time.Second)
						got := s.Bodies()
						seen = []string{got[len(got)-1]}
						require.Len(t, got, 2)
					})
					return seen
				}
				bare := play(t, func(base http.RoundTripper) http.RoundTripper { return base })
				require.Equal(t, []string{big}, bare)
				k := newKit(t, holdfast.Policy{})
				require.Equal(t, bare, play(t, func(base http.RoundTripper) http.RoundTripper { return httpmw.NewTransport(base, k) }))
			})
		}
	}
}

// H6: net/http repeats by itself without limit where every connection is sent
// away; the attempt limit ends that.
func TestH6_TheAttemptLimitEndsWhatNetHTTPRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, transport := playFrames(t, memframes.Step{Answer: memframes.Reset(http2.ErrCodeRefusedStream)})
		p := quick()
		p.Retry.MaxAttempts = 1
		k := newKit(t, p)
		began := time.Now()
		_, err := httpmw.NewTransport(transport, k).RoundTrip(newRequest(t, http.MethodGet, "http://"+memnet.Host+"/", nil))
		require.Error(t, err)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}
