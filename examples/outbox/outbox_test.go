package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

func start(t *testing.T) (*orders, *memnet.Server) {
	t.Helper()
	service := newOrders()
	return service, memnet.Start(t, memnet.HTTP1, service, func(s *http.Server, _ *http.Transport) {
		s.ErrorLog = log.New(io.Discard, "", 0)
	})
}

// The program itself, in virtual time.
func TestEveryOrderIsCarriedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, server := start(t)
		var out strings.Builder
		require.NoError(t, play(t.Context(), service, server.Transport, server.URL, filepath.Join(t.TempDir(), "t"), 5, &out))
		done, twice := service.carriedOut()
		require.Equal(t, 20, done)
		require.Zero(t, twice)
		_, repeats := service.seen()
		require.Positive(t, repeats, "an answer was lost, and the order sent again")
		require.Contains(t, out.String(), "is open")
		require.Contains(t, out.String(), "20 orders taken, 20 sent, 0 left; 20 carried out, 0 of them twice")
	})
}

// A program that ends anywhere goes on where it was, with the same keys.
func TestATableOutlivesItsProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, server := start(t)
		name := filepath.Join(t.TempDir(), "t")
		before, err := openTable(name)
		require.NoError(t, err)
		s, err := newShop(server.Transport, server.URL, before, io.Discard)
		require.NoError(t, err)
		require.NoError(t, s.take("a"))
		require.NoError(t, s.take("b"))
		service.loseAnswers(100) // "a" is carried out, and nobody hears of it
		left, err := s.sendPending(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, left)
		require.NoError(t, before.Close())
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(`{"key":"torn`) // it ended in the middle of a line
		require.NoError(t, err)
		require.NoError(t, f.Close())

		service.loseAnswers(0)
		time.Sleep(time.Minute)
		after, err := openTable(name)
		require.NoError(t, err)
		defer after.Close()
		require.Equal(t, before.pending(), after.pending())
		s, err = newShop(server.Transport, server.URL, after, io.Discard)
		require.NoError(t, err)
		require.NoError(t, s.take("c"))
		require.NoError(t, s.sendAll(t.Context()))
		done, twice := service.carriedOut()
		require.Equal(t, 3, done)
		require.Zero(t, twice)
		require.Equal(t, 3, after.count(sent))
	})
}

// What the service does not want is not sent for ever.
func TestARejectedOrderIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := start(t)
		table, err := openTable(filepath.Join(t.TempDir(), "t"))
		require.NoError(t, err)
		defer table.Close()
		s, err := newShop(server.Transport, server.URL, table, io.Discard)
		require.NoError(t, err)
		require.NoError(t, s.take(""))
		require.NoError(t, s.take("a"))
		left, err := s.sendPending(t.Context())
		require.NoError(t, err)
		require.Zero(t, left)
		require.Equal(t, 1, table.count(rejected))
		require.Equal(t, 1, table.count(sent))
	})
}

// What the service does not want now it may want later: the row stays.
func TestAnOrderThatCameTooEarlyIsKept(t *testing.T) {
	for _, code := range []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway} {
		synctest.Test(t, func(t *testing.T) {
			server := memnet.Start(t, memnet.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
			table, err := openTable(filepath.Join(t.TempDir(), "t"))
			require.NoError(t, err)
			defer table.Close()
			s, err := newShop(server.Transport, server.URL, table, io.Discard)
			require.NoError(t, err)
			require.NoError(t, s.take("a"))
			left, err := s.sendPending(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, left, code)
			require.Zero(t, table.count(rejected))
		})
	}
}

// A line that failed leaves nothing behind that would spoil the next.
func TestALineThatFailedIsTakenBack(t *testing.T) {
	name := filepath.Join(t.TempDir(), "t")
	table, err := openTable(name)
	require.NoError(t, err)
	require.NoError(t, table.insert(row{"1", "lamp"}))

	writable := table.file
	readOnly, err := os.Open(name)
	require.NoError(t, err)
	table.file = readOnly
	require.Error(t, table.insert(row{"2", "never taken"}))
	require.NoError(t, readOnly.Close())
	table.file = writable
	_, err = table.file.WriteAt([]byte(`{"key":"2","order":"written, but not known to be on the disk","state":"pending"}`+"\n"), table.size)
	require.NoError(t, err)

	require.NoError(t, table.insert(row{"3", "sofa"}))
	require.Len(t, table.pending(), 2)
	require.NoError(t, table.Close())
	again, err := openTable(name)
	require.NoError(t, err)
	defer again.Close()
	require.Equal(t, []row{{"1", "lamp"}, {"3", "sofa"}}, again.pending())
}

func TestABrokenTableIsNotOverwritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "t")
	require.NoError(t, os.WriteFile(name, []byte("no table\n"), 0o600))
	_, err := openTable(name)
	require.ErrorContains(t, err, "table "+name)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "no table\n", string(text))
}
