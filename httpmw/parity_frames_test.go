package httpmw_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// frames is a server of bare HTTP/2 frames, for what net/http's never does. Each
// new stream is answered by the next step, the last one for ever. It keeps what
// came of each stream's body.
type frames struct {
	wire  *memnet.Listener
	steps []step

	mu     sync.Mutex
	bodies []*bytes.Buffer // by stream, in the order of their headers
}

type step struct {
	answer func(f *http2.Framer, stream uint32) error
	late   bool // when the request's body has come, not at its headers
}

func playFrames(t *testing.T, steps ...step) *frames {
	s := &frames{wire: memnet.Listen(memnet.Host + ":80"), steps: steps}
	go func() {
		for {
			c, err := s.wire.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	t.Cleanup(func() {
		_ = s.wire.Close()
		s.wire.Reset()
		synctest.Wait()
	})
	return s
}

func (s *frames) transport() *http.Transport {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return &http.Transport{DialContext: s.wire.DialContext, Protocols: p}
}

func (s *frames) got() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range s.bodies {
		all = append(all, body.String())
	}
	return all
}

func (s *frames) serve(c net.Conn) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	if f.WriteSettings() != nil {
		return
	}
	streams := map[uint32]int{}
	end := func(stream uint32, ended, late bool) error {
		step := s.steps[min(streams[stream], len(s.steps)-1)]
		if step.late != late || late && !ended {
			return nil
		}
		return step.answer(f, stream)
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			s.mu.Lock()
			streams[frame.StreamID] = len(s.bodies)
			s.bodies = append(s.bodies, new(bytes.Buffer))
			s.mu.Unlock()
			if err = end(frame.StreamID, false, false); err == nil && frame.StreamEnded() {
				err = end(frame.StreamID, true, true)
			}
		case *http2.DataFrame:
			s.mu.Lock()
			s.bodies[streams[frame.StreamID]].Write(frame.Data())
			s.mu.Unlock()
			err = end(frame.StreamID, frame.StreamEnded(), true)
		}
		if err != nil {
			return
		}
	}
}

func resets(code http2.ErrCode) func(*http2.Framer, uint32) error {
	return func(f *http2.Framer, stream uint32) error { return f.WriteRSTStream(stream, code) }
}

func goAway(code http2.ErrCode) func(*http2.Framer, uint32) error {
	return func(f *http2.Framer, _ uint32) error { return f.WriteGoAway(0, code, nil) }
}

func ok(f *http2.Framer, stream uint32) error {
	var block bytes.Buffer
	if err := hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"}); err != nil {
		return err
	}
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
}

// D069, H2, H6: a server that sends a stream or connection away before it has
// processed anything gets the request again, whole; net/http does that, and with
// the kit nothing of it is lost.
func TestD069_ARequestThatIsSentAwayComesWhole(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1024)
	memory := func() io.Reader { return strings.NewReader(big) }
	for name, c := range map[string]struct {
		away func(*http2.Framer, uint32) error
		late bool
	}{
		"GOAWAY":                      {goAway(http2.ErrCodeNo), false},
		"GOAWAY once the body came":   {goAway(http2.ErrCodeNo), true},
		"REFUSED_STREAM":              {resets(http2.ErrCodeRefusedStream), false},
		"REFUSED once the body came":  {resets(http2.ErrCodeRefusedStream), true},
		"PROTOCOL_ERROR on the first": {resets(http2.ErrCodeProtocol), false},
	} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodGet} {
			t.Run(name+"/"+method, func(t *testing.T) {
				play := func(t *testing.T, over func(http.RoundTripper) http.RoundTripper) (seen []string) {
					synctest.Test(t, func(t *testing.T) {
						s := playFrames(t, step{c.away, c.late}, step{ok, true})
						began := time.Now()
						resp, err := over(s.transport()).RoundTrip(newRequest(t, method, "http://"+memnet.Host+"/", memory()))
						require.NoError(t, err)
						require.Equal(t, 200, resp.StatusCode)
						require.NoError(t, resp.Body.Close())
						require.Less(t, time.Since(began), 2*time.Second)
						got := s.got()
						seen = []string{got[len(got)-1]}
						require.Len(t, got, 2)
					})
					return seen
				}
				bare := play(t, func(base http.RoundTripper) http.RoundTripper { return base })
				require.Equal(t, []string{big}, bare)
				k, err := holdfast.New(holdfast.Config{})
				require.NoError(t, err)
				require.Equal(t, bare, play(t, func(base http.RoundTripper) http.RoundTripper { return httpmw.NewTransport(base, k) }))
			})
		}
	}
}

// H6: net/http repeats by itself without limit where every connection is sent
// away; the attempt limit ends that.
func TestH6_TheAttemptLimitEndsWhatNetHTTPRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := playFrames(t, step{resets(http2.ErrCodeRefusedStream), false})
		p := quick()
		p.Retry.MaxAttempts = 1
		k, err := holdfast.New(holdfast.Config{Default: p})
		require.NoError(t, err)
		began := time.Now()
		_, err = httpmw.NewTransport(s.transport(), k).RoundTrip(newRequest(t, http.MethodGet, "http://"+memnet.Host+"/", nil))
		require.Error(t, err)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}
