package httpmw_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// written counts the writes of a connection.
type written struct {
	net.Conn
	times *atomic.Int32
}

func (w written) Write(p []byte) (int, error) {
	w.times.Add(1)
	return w.Conn.Write(p)
}

// A short body that is in memory leaves with the headers, as over the bare transport,
// whether the request may be repeated or not; and each attempt sends it whole.
func TestAShortBodyInMemoryLeavesWithTheHeaders(t *testing.T) {
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bodies = append(bodies, string(body)); len(bodies) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	const content = "a lamp"
	for name, body := range map[string]func() io.Reader{
		"strings.Reader": func() io.Reader { return strings.NewReader(content) },
		"bytes.Reader":   func() io.Reader { return bytes.NewReader([]byte(content)) },
		"bytes.Buffer":   func() io.Reader { return bytes.NewBufferString(content) },
	} {
		for _, method := range []string{http.MethodPut, http.MethodPost} {
			for _, opens := range []bool{true, false} {
				bodies = nil
				var times atomic.Int32
				base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := new(net.Dialer).DialContext(ctx, network, addr)
					return written{c, &times}, err
				}}
				p := holdfast.Policy{Retry: &retry.Policy{Backoff: retry.NoWait()}}
				req, err := http.NewRequestWithContext(t.Context(), method, s.URL, body())
				require.NoError(t, err)
				if !opens {
					req.GetBody = nil
				}
				resp, err := httpmw.NewTransport(base, newKit(t, p)).RoundTrip(req)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				base.CloseIdleConnections()
				want := []string{content}
				if method == http.MethodPut {
					want = append(want, content)
				}
				require.Equal(t, want, bodies, name)
				require.EqualValues(t, len(want), times.Load(), "%s, %s, GetBody %t: one write for each attempt", name, method, opens)
			}
		}
	}
}

// H2: a transport that still has the body of a finished attempt reads nothing that
// another attempt or the caller has a use for.
func TestH2_AFinishedAttemptReadsNothingThatIsShared(t *testing.T) {
	const few, many = 4 << 10, 4<<10 + 1
	for name, tc := range map[string]struct {
		body  func(memory []byte) io.Reader
		size  int
		gated bool
	}{
		"a string":         {func(memory []byte) io.Reader { return strings.NewReader(string(memory)) }, many, false},
		"few bytes":        {func(memory []byte) io.Reader { return bytes.NewReader(memory) }, few, false},
		"many bytes":       {func(memory []byte) io.Reader { return bytes.NewReader(memory) }, many, true},
		"a short buffer":   {func(memory []byte) io.Reader { return bytes.NewBuffer(memory) }, few, false},
		"a longer buffer":  {func(memory []byte) io.Reader { return bytes.NewBuffer(memory) }, many, true},
		"a body part read": {func(memory []byte) io.Reader { return afterOne(bytes.NewReader(memory)) }, few, false},
	} {
		memory := bytes.Repeat([]byte("a"), tc.size)
		body := tc.body(memory)
		content := strings.Repeat("a", body.(interface{ Len() int }).Len())
		over, read := make(chan struct{}), make(chan string)
		attempts := 0
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if attempts++; attempts == 1 {
				go func() {
					<-over
					late, err := io.ReadAll(req.Body)
					if err != nil {
						late = []byte(err.Error())
					}
					read <- string(late)
				}()
				return nil, errDown
			}
			all, err := io.ReadAll(req.Body)
			require.NoError(t, err)
			require.Equal(t, content, string(all), name)
			return &http.Response{StatusCode: 204, Body: http.NoBody}, req.Body.Close()
		})
		p := quick()
		p.Retry.Backoff = retry.NoWait()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://api.example.com/", body)
		require.NoError(t, err)
		_, err = httpmw.NewTransport(base, newKit(t, p)).RoundTrip(req)
		require.NoError(t, err)
		copy(memory, bytes.Repeat([]byte("b"), tc.size)) // the caller has a use for it
		close(over)
		if late := <-read; tc.gated {
			require.Contains(t, late, "is over", name)
		} else {
			require.Equal(t, content, late, name)
		}
	}
}

func afterOne(r *bytes.Reader) *bytes.Reader {
	_, _ = r.ReadByte()
	return r
}

// H2: a GetBody of the caller's own is asked for each further attempt, and without one
// no more is kept than the option says.
func TestH2_AGetBodyOfTheCallersIsAsked(t *testing.T) {
	opened := 0
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, req.Body)
		return nil, errDown
	})
	p := quick()
	p.Retry.Backoff = retry.NoWait()
	send := func(limit int64, getBody func() (io.ReadCloser, error)) int {
		k, sent := newKit(t, p), 0
		tr := httpmw.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			sent++
			return base.RoundTrip(req)
		}), k, httpmw.WithBufferLimit(limit))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://api.example.com/", strings.NewReader("four"))
		require.NoError(t, err)
		req.GetBody = getBody
		_, err = tr.RoundTrip(req)
		require.ErrorIs(t, err, errDown)
		return sent
	}
	attempts := send(4, func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(strings.NewReader("four")), nil
	})
	require.Greater(t, attempts, 1)
	require.Equal(t, attempts-1, opened)
	require.Equal(t, attempts, send(4, nil))
	require.Equal(t, 1, send(3, nil))
}

// R10: a hedge sends the whole body too, if that is in memory, with GetBody or without.
func TestR10_ABodyInMemoryIsHedgedWithoutGetBody(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, hedging(), answers(silent, status(200, "two")))
		req := s.request(t, t.Context(), http.MethodPut, "/", "a lamp")
		req.GetBody = nil
		_, body, err := s.do(t, req)
		require.NoError(t, err)
		require.Equal(t, "two", body)
		hits := s.script.hits()
		require.Len(t, hits, 2)
		for _, h := range hits {
			require.Equal(t, "a lamp", h.body)
		}
	})
}
