package httpmw_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
)

// download is a program that knows of no kit: it fetches a file into w and, when
// the connection breaks, goes on where it was, as long as the file is the same.
func download(ctx context.Context, client *http.Client, url string, w io.Writer) (requests int, err error) {
	var have int64
	var etag string
	for requests < 100 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return requests, err
		}
		want := http.StatusOK
		if have > 0 {
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
			req.Header.Set("If-Range", etag)
			want = http.StatusPartialContent
		}
		requests++
		resp, err := client.Do(req)
		if err != nil {
			return requests, err
		}
		if resp.StatusCode != want {
			resp.Body.Close()
			return requests, errors.New(resp.Status)
		}
		etag = resp.Header.Get("ETag")
		n, err := io.Copy(w, resp.Body)
		resp.Body.Close()
		if have += n; err == nil {
			return requests, nil
		}
		if ctx.Err() != nil {
			return requests, err
		}
	}
	return requests, errors.New("the connection breaks too often")
}

// mirror serves a file and breaks the connection after every some bytes.
type mirror struct {
	file  []byte
	piece int // bytes after which it breaks; 0: never
	down  int // every so manieth request is answered 503; 0: none
	asked int
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.asked++
	if m.down > 0 && m.asked%m.down == 1 {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "busy")
		return
	}
	w.Header().Set("ETag", `"v1"`)
	http.ServeContent(&breaks{w, m.piece}, r, "file.bin", time.Time{}, bytes.NewReader(m.file))
}

// breaks is a ResponseWriter that aborts once so much has been written.
type breaks struct {
	http.ResponseWriter
	left int
}

func (b *breaks) Write(p []byte) (int, error) {
	if b.left == 0 {
		return b.ResponseWriter.Write(p)
	}
	n, err := b.ResponseWriter.Write(p[:min(len(p), b.left)])
	if b.left -= n; err == nil && b.left == 0 {
		_ = http.NewResponseController(b.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func (b *breaks) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func randomFile(size int) []byte {
	file := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(file)
	return file
}

// A download that resumes gets the same file, with the same requests, as over the
// bare transport; where the server is busy in between, it does not notice.
func TestADownloadThatResumes(t *testing.T) {
	file := randomFile(300_000)
	for name, c := range map[string]struct {
		piece, down int
		requests    int
	}{
		"whole":           {0, 0, 1},
		"broken":          {70_000, 0, 5},
		"broken and busy": {70_000, 2, 5},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, proto memnet.Proto) {
				p := quick()
				p.Breaker = breaker.Off()
				k := newKit(t, p)
				m := &mirror{file: file, piece: c.piece, down: c.down}
				server := memnet.Start(t, proto, m)
				var got bytes.Buffer
				requests, err := download(t.Context(), &http.Client{Transport: httpmw.NewTransport(server.Transport, k)}, server.URL, &got)
				require.NoError(t, err)
				require.Equal(t, c.requests, requests)
				require.Equal(t, sha256.Sum256(file), sha256.Sum256(got.Bytes()))

				got.Reset()
				m.asked = 0
				requests, err = download(t.Context(), server.Client(), server.URL, &got)
				if c.down > 0 {
					require.EqualError(t, err, "503 Service Unavailable", "the bare transport's user notices")
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.requests, requests)
				require.Equal(t, sha256.Sum256(file), sha256.Sum256(got.Bytes()))
			})
		})
	}
}

// H3: a file that breaks again and again opens the breaker, though each answer
// began with a good status; after the cooldown the download can go on.
func TestH3_ADownloadThatBreaksOpensTheBreaker(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		k := newKit(t, quick())
		server := memnet.Start(t, proto, &mirror{file: randomFile(300_000), piece: 10_000})
		requests, err := download(t.Context(), &http.Client{Transport: httpmw.NewTransport(server.Transport, k)}, server.URL, io.Discard)
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, 6, requests)
		synctest.Wait()
	})
}

// The same over real sockets.
func TestADownloadOverRealSockets(t *testing.T) {
	p := quick()
	p.Breaker = breaker.Off()
	k := newKit(t, p)
	file := randomFile(1 << 20)
	server := httptest.NewServer(&mirror{file: file, piece: 200_000, down: 2})
	t.Cleanup(server.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	var got bytes.Buffer
	requests, err := download(t.Context(), &http.Client{Transport: httpmw.NewTransport(base, k)}, server.URL, &got)
	require.NoError(t, err)
	require.Equal(t, 6, requests)
	require.Equal(t, sha256.Sum256(file), sha256.Sum256(got.Bytes()))
}
