package httpmw_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// metered counts what is read of a request's body, and its Closes.
type metered struct {
	io.Reader
	read   atomic.Int64
	closed atomic.Bool
}

func (w *metered) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.read.Add(int64(n))
	return n, err
}

func (w *metered) Close() error { w.closed.Store(true); return nil }

// endless is a body without length.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// H1, H2: uploads behave as over the bare transport.
func TestH1_UploadsAreThoseOfTheBareTransport(t *testing.T) {
	const large = 1 << 20
	refuse := func(n *notes, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "no")
	}
	accept := func(n *notes, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		n.served("%s of %d: %q %v %v", r.Method, r.ContentLength, body, r.TransferEncoding, err)
		n.served("trailer %v", r.Trailer)
		_, _ = io.WriteString(w, "ok")
	}
	playEach(t, map[string]situation{
		"early answer to a large body": {
			serve: refuse,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				body := &metered{Reader: io.LimitReader(endless{}, large)}
				req := newRequest(t, http.MethodPost, url, body)
				req.ContentLength = large
				n.answer(c.Do(req))
				synctest.Wait()
				n.saw("closed: %t", body.closed.Load())
			},
		},
		"early answer to a large body in memory": {
			serve: refuse,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				n.answer(c.Do(newRequest(t, http.MethodPut, url, bytes.NewReader(make([]byte, large)))))
			},
			real: true,
		},
		"early answer to an endless body": {
			serve: refuse,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				body := &metered{Reader: endless{}}
				n.answer(c.Do(newRequest(t, http.MethodPost, url, body)))
				synctest.Wait()
				n.saw("closed: %t", body.closed.Load())
			},
		},
		"expect, accepted": {
			serve: accept,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				req := newRequest(t, http.MethodPost, url, strings.NewReader("body"))
				req.Header.Set("Expect", "100-continue")
				n.answer(c.Do(req))
			},
			want: []string{`200 OK "ok" <nil>`, "1 dialled, 0 left open"},
		},
		"expect, refused": {
			serve: refuse,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				body := &metered{Reader: strings.NewReader("body")}
				req := newRequest(t, http.MethodPost, url, body)
				req.ContentLength = 4
				req.Header.Set("Expect", "100-continue")
				n.answer(c.Do(req))
				synctest.Wait()
				n.saw("%d read, closed: %t", body.read.Load(), body.closed.Load())
			},
			want: []string{`403 Forbidden "no" <nil>`, "0 read, closed: true", "1 dialled, 0 left open"},
		},
		"expect, of a server that is slow to say": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				time.Sleep(3 * time.Second)
				accept(n, w, r)
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				began := time.Now()
				body := &metered{Reader: strings.NewReader("body")}
				req := newRequest(t, http.MethodPost, url, body)
				req.Header.Set("Expect", "100-continue")
				time.AfterFunc(500*time.Millisecond, func() { n.saw("%d read by then", body.read.Load()) })
				n.answer(c.Do(req))
				n.saw("after %v", time.Since(began))
			},
			want: []string{"0 read by then", `200 OK "ok" <nil>`, "after 3s", "1 dialled, 0 left open"},
		},
		"lengths": {
			serve: accept,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for _, body := range []io.Reader{nil, http.NoBody, strings.NewReader(""), strings.NewReader("a"), bytes.NewBufferString("b"), io.MultiReader(strings.NewReader("c")), io.MultiReader(strings.NewReader(""))} {
					for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodGet, http.MethodDelete} {
						n.answer(c.Do(newRequest(t, method, url, body)))
						if s, ok := body.(io.Seeker); ok {
							_, _ = s.Seek(0, io.SeekStart)
						}
					}
				}
			},
			real: true,
		},
		"a body that breaks": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				broken := io.MultiReader(strings.NewReader("part"), errReader{errors.New("disk on fire")})
				_, err := c.Do(newRequest(t, http.MethodPost, url, broken))
				n.saw("%v", err)
			},
		},
		"a body shorter than said": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				req := newRequest(t, http.MethodPost, url, io.MultiReader(strings.NewReader("part")))
				req.ContentLength = 10
				_, err := c.Do(req)
				n.saw("%v", err)
			},
		},
		"a body longer than said": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				req := newRequest(t, http.MethodPost, url, io.MultiReader(strings.NewReader("much too long")))
				req.ContentLength = 4
				_, err := c.Do(req)
				n.saw("%t", err != nil)
			},
			want: []string{"true", "1 dialled, 0 left open"},
		},
		"trailers of the request": {
			serve: accept,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				req := newRequest(t, http.MethodPost, url, nil)
				req.Trailer = http.Header{"X-Sum": nil}
				req.ContentLength = -1
				req.Body = io.NopCloser(io.MultiReader(strings.NewReader("body"), atEnd(func() { req.Trailer.Set("X-Sum", "4") })))
				n.answer(c.Do(req))
			},
			real: true,
		},
		"the answer begins while the body is sent": {
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				rc := http.NewResponseController(w)
				_ = rc.EnableFullDuplex()
				w.WriteHeader(200)
				_ = rc.Flush()
				buf := make([]byte, 64)
				for {
					k, err := r.Body.Read(buf)
					_, _ = fmt.Fprintf(w, "<%s>", buf[:k])
					_ = rc.Flush()
					if err != nil {
						return
					}
				}
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				r, w := io.Pipe()
				resp, err := c.Do(newRequest(t, http.MethodPost, url, r))
				if err != nil {
					n.saw("error %v", err)
					return
				}
				defer resp.Body.Close()
				buf := make([]byte, 64)
				for i := range 5 {
					time.Sleep(time.Minute)
					_, err = fmt.Fprintf(w, "part %d", i)
					k, rerr := resp.Body.Read(buf)
					n.saw("%s %v %v", buf[:k], err, rerr)
				}
				_ = w.Close()
				rest, err := io.ReadAll(resp.Body)
				n.saw("%s %v", rest, err)
			},
		},
		"a body that is sent after the answer has come": {
			protos: []memnet.Proto{memnet.H2C, memnet.H2},
			serve: func(n *notes, w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(200)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Minute)
				got, err := io.Copy(io.Discard, r.Body)
				n.served("%d %v", got, err)
				_, _ = io.WriteString(w, "done")
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				body := &metered{Reader: io.LimitReader(endless{}, large)}
				n.answer(c.Do(newRequest(t, http.MethodPut, url, body)))
				n.saw("%d", body.read.Load())
			},
			want: []string{`200 OK "done" <nil>`, fmt.Sprint(large), "1 dialled, 0 left open"},
		},
	})
}

// errReader fails at once.
type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// atEnd is a reader of nothing that does something first.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) { f(); return 0, io.EOF }
