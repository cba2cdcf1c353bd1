package httpmw_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/retry"
)

// flaky answers each caller's requests by turns with 503 and 200, with bodies of
// a usual size.
type flaky struct {
	mu    sync.Mutex
	turns map[string]int
	page  []byte
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.turns[r.Header.Get("X-Worker")]++
	bad := f.turns[r.Header.Get("X-Worker")]%2 == 1
	f.mu.Unlock()
	if bad {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(f.page)
}

// work makes calls by several workers at once, each its share.
func work(t *testing.T, client *http.Client, url string, workers, calls int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range workers {
		name := string(rune('a' + i))
		wg.Go(func() {
			for range calls / workers {
				req, err := http.NewRequest(http.MethodGet, url, nil)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("X-Worker", name)
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
					t.Error(resp.StatusCode, err)
				}
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
}

// untiring repeats whatever it costs. It waits a little each time: timers that are
// due at once, of several goroutines in one bubble, crash the race detector of Go
// 1.26.
func untiring() holdfast.Policy {
	p := quick()
	p.Breaker, p.Timeout = breaker.Off(), nil
	p.Retry = &retry.Policy{Backoff: retry.Backoff{Base: time.Millisecond, Factor: 1, Jitter: retry.NoJitter}, Budget: retry.NoBudget()}
	return p
}

// H3, D035: 1,000 calls that are "503 then 200" use as many connections as there
// are workers, and leave none open beyond those kept idle. The transport is told
// to open no more at a time: one that a failed answer held back would be missed,
// and one that was lost would be opened anew. (Without that a bare transport, too,
// opens some more when many begin at once, and throws them away.)
func TestH3_AsManyConnectionsAsWorkers(t *testing.T) {
	const workers, calls = 8, 1000
	serve := func() *flaky { return &flaky{turns: map[string]int{}, page: make([]byte, 2_000)} }
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		server := memnet.Start(t, proto, serve())
		server.Transport.MaxIdleConnsPerHost, server.Transport.MaxConnsPerHost = workers, workers
		k := newKit(t, untiring())
		client := &http.Client{Transport: httpmw.NewTransport(server.Transport, k)}
		work(t, client, server.URL, workers, calls)
		most := workers
		if proto != memnet.HTTP1 {
			most = 1
		}
		require.LessOrEqual(t, server.Wire.Dials(), workers)
		require.LessOrEqual(t, server.Wire.Open(), most)
		synctest.Wait()
		client.CloseIdleConnections()
		synctest.Wait()
		require.Zero(t, server.Wire.Open(), "none is left open")
	})
	t.Run("real sockets", func(t *testing.T) {
		var opened, open atomic.Int64
		server := httptest.NewUnstartedServer(serve())
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				opened.Add(1)
				open.Add(1)
			case http.StateClosed:
				open.Add(-1)
			}
		}
		server.Start()
		k := newKit(t, untiring())
		client := &http.Client{Transport: httpmw.NewTransport(&http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: workers}, k)}
		work(t, client, server.URL, workers, calls)
		// A thousand failed answers were read on; the time for that is real here, and a busy
		// machine may miss it for some, whose connections are closed then.
		require.LessOrEqual(t, opened.Load(), int64(4*workers))
		client.CloseIdleConnections()
		server.Close()
		require.Zero(t, open.Load())
	})
}

// Twenty calls that fail, by a status, a refusal or a broken body, leave the idle
// connections alone.
func TestH3_FailingCallsDoNotCloseIdleConnections(t *testing.T) {
	overEach(t, func(t *testing.T, proto memnet.Proto) {
		s := start(t, proto, quick(), answers(status(200, "good"), status(503, "down")))
		_, _, err := s.get(t, "/")
		require.NoError(t, err)
		require.Equal(t, 1, s.Wire.Open())
		refused := 0
		for range 20 {
			if _, _, err := s.get(t, "/"); err != nil {
				require.ErrorIs(t, err, breaker.ErrOpen)
				refused++
			}
		}
		require.Equal(t, 18, refused)
		require.Equal(t, 1, s.Wire.Open())
		require.Equal(t, 1, s.Wire.Dials())
	})
}
