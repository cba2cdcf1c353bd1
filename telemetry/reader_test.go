package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/telemetry"
)

// timed is a reader's connection; it notes how long each write may take.
type timed struct {
	*httptest.ResponseRecorder
	deadline time.Time
	left     []time.Duration
}

func (w *timed) SetWriteDeadline(at time.Time) error {
	w.deadline = at
	return nil
}

func (w *timed) Write(b []byte) (int, error) {
	w.left = append(w.left, time.Until(w.deadline))
	return w.ResponseRecorder.Write(b)
}

// A reader who takes nothing any more does not hold the page for ever, and only so
// many are shown changes at once.
func TestTheReadersOfTheLivePageAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, "shop", quick())
		page := telemetry.Page(k)
		defer page.Close()
		ctx, cancel := context.WithCancel(t.Context())
		live := func() *timed {
			w := &timed{ResponseRecorder: httptest.NewRecorder()}
			page.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?live", nil))
			return w
		}
		first := make(chan *timed, 1)
		go func() { first <- live() }()
		for range 99 {
			go live()
		}
		synctest.Wait()
		require.Equal(t, http.StatusServiceUnavailable, live().Code)
		open(t, k, read)
		time.Sleep(3 * time.Second)

		cancel()
		w := <-first
		require.GreaterOrEqual(t, len(w.left), 2)
		for _, left := range w.left {
			require.Equal(t, 10*time.Second, left, "for each write, and not once for all")
		}
		synctest.Wait()
		require.Equal(t, http.StatusOK, live().Code, "their places are free again")
	})
}

// HEAD gets what GET would have, without the body: none stays, whatever is asked for.
func TestHeadGetsHeadersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a reader is left
		page := telemetry.Page(newKit(t, "shop", quick()))
		defer page.Close()
		wire := memnet.Start(t, memnet.HTTP1, page)
		for address, kind := range map[string]string{
			"/": "text/html; charset=utf-8", "/?live": "text/event-stream", "/?asset=page.css": "text/css; charset=utf-8",
		} {
			for range 120 { // more than there are places for readers
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				req, err := http.NewRequestWithContext(ctx, http.MethodHead, wire.URL+address, nil)
				require.NoError(t, err)
				resp, err := wire.Transport.RoundTrip(req)
				require.NoError(t, err)
				require.Equal(t, []any{http.StatusOK, kind}, []any{resp.StatusCode, resp.Header.Get("Content-Type")}, address)
				require.Equal(t, http.NoBody, resp.Body)
				synctest.Wait()
				require.Zero(t, time.Since(began))
				cancel()
			}
		}
	})
}
