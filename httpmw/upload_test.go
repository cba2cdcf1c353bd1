package httpmw_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// H2: each attempt sends the whole body again, with the right length (D036).
func TestD036_EachAttemptSendsTheWholeBody(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	few := big[:60<<10]
	for name, tc := range map[string]struct {
		body   func() io.Reader
		length int64 // 0: what http.NewRequest makes of it
		want   string
		seen   int64
		hits   int
	}{
		"bytes.Reader":                     {func() io.Reader { return bytes.NewReader([]byte(big)) }, 0, big, 1 << 20, 2},
		"strings.Reader":                   {func() io.Reader { return strings.NewReader(big) }, 0, big, 1 << 20, 2},
		"http.NoBody":                      {func() io.Reader { return http.NoBody }, 0, "", 0, 2},
		"nil":                              {func() io.Reader { return nil }, 0, "", 0, 2},
		"a stream that is kept":            {func() io.Reader { return &opaque{Reader: strings.NewReader(few)} }, 0, few, -1, 2},
		"a stream with its length":         {func() io.Reader { return &opaque{Reader: strings.NewReader(few)} }, 60 << 10, few, 60 << 10, 2},
		"a stream of just the limit":       {func() io.Reader { return &opaque{Reader: strings.NewReader(big[:64<<10])} }, 0, big[:64<<10], -1, 2},
		"a stream of one byte more":        {func() io.Reader { return &opaque{Reader: strings.NewReader(big[:64<<10+1])} }, 0, big[:64<<10+1], -1, 1},
		"a stream that is too long":        {func() io.Reader { return &opaque{Reader: strings.NewReader(big)} }, 0, big, -1, 1},
		"a stream that is empty":           {func() io.Reader { return &opaque{Reader: strings.NewReader("")} }, 0, "", -1, 2},
		"a stream read in one-byte pieces": {func() io.Reader { return &opaque{Reader: oneByte{strings.NewReader(big[:500])}} }, 0, big[:500], -1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				p := quick()
				p.Timeout = timeout.Off()
				s := start(t, proto, p, answers(status(503, "again"), status(200, "done")))
				body := tc.body()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, body)
				require.NoError(t, err)
				if tc.length > 0 {
					req.ContentLength = tc.length
				}
				resp, err := s.client.Do(req)
				require.NoError(t, err)
				defer resp.Body.Close()
				require.Equal(t, map[int]int{1: 503, 2: 200}[tc.hits], resp.StatusCode)
				hits := s.script.hits()
				require.Len(t, hits, tc.hits)
				for _, h := range hits {
					require.True(t, tc.want == h.body, "the body came whole")
					require.Equal(t, tc.seen, h.length)
				}
				synctest.Wait()
				if o, ok := body.(*opaque); ok {
					require.Equal(t, 1, o.closed(), "H1: the caller's body is closed once")
				}
			})
		})
	}
}

type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

// H2: the limit is the user's, and 0 keeps nothing.
func TestH2_TheBufferLimitIsTheUsers(t *testing.T) {
	for limit, hits := range map[int64]int{0: 1, 9: 1, 10: 2} {
		overEach(t, func(t *testing.T, proto memnet.Proto) {
			s := start(t, proto, quick(), answers(status(503, ""), status(200, "")), httpmw.WithBufferLimit(limit))
			req := s.request(t, t.Context(), http.MethodPut, "/", "")
			req.Body, req.ContentLength = &opaque{Reader: strings.NewReader("0123456789")}, 10
			_, _, err := s.do(t, req)
			require.NoError(t, err)
			require.Len(t, s.script.hits(), hits)
		})
	}
}

// H2: of a request that may not be repeated nothing is kept, yet one of which
// nothing was sent is made again.
func TestH2_AnUnsafeStreamIsSentOnce(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(503, "")))
		body := &opaque{Reader: strings.NewReader("order")}
		req := s.request(t, t.Context(), http.MethodPost, "/", "")
		req.Body = body
		_, _, err := s.do(t, req)
		require.NoError(t, err)
		require.Len(t, s.script.hits(), 1)
		synctest.Wait()
		require.Equal(t, 1, body.closed())
	})
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(201, "")))
		s.Wire.Refuse(true)
		time.AfterFunc(5*time.Millisecond, func() { s.Wire.Refuse(false) })
		body := &opaque{Reader: strings.NewReader("order")}
		req := s.request(t, t.Context(), http.MethodPost, "/", "")
		req.Body = body
		code, _, err := s.do(t, req)
		require.NoError(t, err)
		require.Equal(t, 201, code)
		require.Equal(t, "order", s.script.hits()[0].body)
		synctest.Wait()
		require.Equal(t, 1, body.closed())
	})
}

// shared is a ReadSeeker behind GetBody: one object for all attempts. It fails
// the test if it is read by two at once or after the attempt that it was opened
// for is over.
type shared struct {
	t       *testing.T
	content string
	mu      sync.Mutex
	offset  int
	opened  int
	reading atomic.Int32
	slow    time.Duration
}

func (s *shared) open() (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Zero(s.t, s.reading.Load(), "GetBody is called while an earlier attempt still reads")
	s.offset = 0
	s.opened++
	return sharedBody{s, s.opened}, nil
}

type sharedBody struct {
	s  *shared
	nr int
}

func (b sharedBody) Read(p []byte) (int, error) {
	if b.s.reading.Add(1) > 1 {
		b.s.t.Error("it is read by two at once")
	}
	defer b.s.reading.Add(-1)
	time.Sleep(b.s.slow) // virtual: a file on a slow disk
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.nr != b.s.opened {
		b.s.t.Error("it is read by an attempt that is over")
		return 0, io.EOF
	}
	if b.s.offset == len(b.s.content) {
		return 0, io.EOF
	}
	n := copy(p, b.s.content[b.s.offset:min(b.s.offset+100, len(b.s.content))])
	b.s.offset += n
	return n, nil
}

func (b sharedBody) Close() error { return nil }

// H2: a finished attempt is gated from the body before GetBody is called again.
func TestH2_AFinishedAttemptReadsNoMore(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		content := strings.Repeat("x", 1000)
		file := &shared{t: t, content: content, slow: 20 * time.Millisecond}
		// The first attempt is answered before its body has been read.
		early := make(chan struct{})
		seen := make(chan string, 10)
		s := memnet.Start(t, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-early:
				body, _ := io.ReadAll(r.Body)
				seen <- string(body)
			default:
				close(early)
				w.WriteHeader(503)
			}
		}))
		k, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
			Retry: &retry.Policy{Backoff: retry.Backoff{Base: time.Millisecond, Factor: 1, Jitter: retry.NoJitter}},
		}})
		require.NoError(t, err)
		tr := httpmw.NewTransport(s.Transport, k)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, nil)
		require.NoError(t, err)
		req.Body, _ = file.open()
		req.GetBody, req.ContentLength = file.open, int64(len(content))
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, content, <-seen)
	})
}

// A GetBody that fails ends the call with the last response, and says why.
func TestAGetBodyThatFailsLeavesTheResponse(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		broken := errors.New("the file is gone")
		s := start(t, proto, quick(), answers(status(503, "down")))
		req := s.request(t, t.Context(), http.MethodPut, "/", "x")
		req.GetBody = func() (io.ReadCloser, error) { return nil, broken }
		resp, err := s.client.Do(req)
		require.NoError(t, err)
		require.Equal(t, "down", readAll(t, resp.Body))
		require.ErrorIs(t, httpmw.Stopped(resp), broken)
		require.Len(t, s.script.hits(), 1)
	})
}

// A body that GetBody opened for an attempt that is then not made is closed.
func TestASpareBodyIsClosed(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		p := quick()
		p.Retry.Backoff.Base, p.Retry.Backoff.Cap = time.Second, time.Second
		s := start(t, proto, p, answers(status(503, "down")))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		req := s.request(t, ctx, http.MethodPut, "/", "x")
		spare := &opaque{Reader: strings.NewReader("x")}
		req.GetBody = func() (io.ReadCloser, error) { return spare, nil }
		_, _, err := s.do(t, req)
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Equal(t, 1, spare.closed())
	})
}

// H1: a caller's body is closed when its call was refused.
func TestH1_TheBodyOfARefusedRequestIsClosed(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, narrow(), answers(status(200, "held")))
		held, err := s.client.Do(s.request(t, t.Context(), http.MethodGet, "/", ""))
		require.NoError(t, err)
		body := &opaque{Reader: strings.NewReader("x")}
		req := s.request(t, t.Context(), http.MethodPost, "/", "")
		req.Body = body
		_, err = s.transport.RoundTrip(req)
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.Equal(t, 1, body.closed())
		require.NoError(t, held.Body.Close())
	})
}

// H2: a body that is read on after the answer, beyond what is kept, is not sent
// again as if it were whole.
func TestH2_ABodyReadOnAfterTheAnswerIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pieces := []string{"first ", strings.Repeat("x", 40<<10), strings.Repeat("y", 40<<10), "last"}
		body := readerFunc(func(p []byte) (int, error) {
			if len(pieces) == 0 {
				return 0, io.EOF
			}
			time.Sleep(20 * time.Millisecond)
			n := copy(p, pieces[0])
			if pieces[0] = pieces[0][n:]; pieces[0] == "" {
				pieces = pieces[1:]
			}
			return n, nil
		})
		hits := 0
		p := quick()
		p.Timeout = timeout.Off()
		p.Retry.Backoff.Base = time.Second
		s := memnet.Start(t, memnet.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hits++
			control := http.NewResponseController(w)
			_ = control.EnableFullDuplex()
			w.WriteHeader(503)
			_ = control.Flush()
			_, _ = io.Copy(io.Discard, r.Body)
		}))
		k := newKit(t, p)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL, body)
		require.NoError(t, err)
		resp, err := httpmw.NewTransport(s.Transport, k).RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 1, hits)
		require.Error(t, httpmw.Stopped(resp))
	})
}

// The caller's own body that cannot be read says nothing about the server, and is
// not sent again.
func TestABodyThatCannotBeReadIsTheCallersFault(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		attempts := 0
		s := start(t, proto, quick(), answers(status(200, "")), httpmw.WithAttemptHook(func(*http.Request, int) error { attempts++; return nil }))
		broken := errors.New("disk error")
		for range 10 {
			req := s.request(t, t.Context(), http.MethodPut, "/", "")
			req.Body = io.NopCloser(readerFunc(func([]byte) (int, error) { return 0, broken }))
			_, err := s.transport.RoundTrip(req)
			require.ErrorIs(t, err, broken)
		}
		require.Equal(t, 10, attempts)
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
	})
}
