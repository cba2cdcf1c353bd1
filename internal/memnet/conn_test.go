package memnet_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// twice runs a test in two bubbles one after the other, for what was made in
// the first must not be met again in the second.
func twice(t *testing.T, test func(*testing.T)) {
	for range 2 {
		synctest.Test(t, test)
	}
}

// pair returns both ends of a connection on l.
func pair(t *testing.T, l *memnet.Listener) (client, server *memnet.Conn) {
	t.Helper()
	client, err := l.Dial()
	require.NoError(t, err)
	accepted, err := l.Accept()
	require.NoError(t, err)
	server = accepted.(*memnet.Conn)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

func read(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	p := make([]byte, n)
	_, err := io.ReadFull(c, p)
	require.NoError(t, err)
	return string(p)
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	n, err := c.Write([]byte(s))
	require.NoError(t, err)
	require.Equal(t, len(s), n)
}

func TestBytesGoBothWaysAndHalvesCloseAlone(t *testing.T) {
	twice(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		client, server := pair(t, l)
		write(t, client, "ask")
		require.NoError(t, client.CloseWrite())

		all, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Equal(t, "ask", string(all))

		write(t, server, "answer")
		require.NoError(t, server.Close())
		require.Equal(t, "answer", read(t, client, 6))
		_, err = client.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)

		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = server.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, server.Close(), net.ErrClosed)
		require.Equal(t, "a.test:1", client.RemoteAddr().String())
		require.Equal(t, client.LocalAddr(), server.RemoteAddr())
	})
}

func TestAWriteToAClosedEndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, memnet.Listen("a.test:1"))
		require.NoError(t, server.Close())
		_, err := client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestAWriterWaitsForAReaderOnceTheBufferIsFull(t *testing.T) {
	twice(t, func(t *testing.T) {
		client, server := pair(t, memnet.Listen("a.test:1"))
		sent := make([]byte, 5*memnet.BufferSize/2)
		for i := range sent {
			sent[i] = byte(rand.Uint32())
		}
		done := false
		go func() {
			_, _ = client.Write(sent)
			_ = client.CloseWrite()
			done = true
		}()
		synctest.Wait()
		require.False(t, done)
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got))
	})
}

func TestWritesAtTheSameTimeDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, memnet.Listen("a.test:1"))
		const size = memnet.BufferSize + 1000
		var writers sync.WaitGroup
		for _, b := range []byte("abcd") {
			writers.Go(func() { _, _ = client.Write(bytes.Repeat([]byte{b}, size)) })
		}
		go func() {
			writers.Wait()
			_ = client.CloseWrite()
		}()
		synctest.Wait() // all stand before a full buffer
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Len(t, got, 4*size)
		for i := 0; i < len(got); i += size {
			require.Equal(t, size, bytes.Count(got[i:i+size], got[i:i+1]))
		}
	})
}

func TestDeadlines(t *testing.T) {
	timedOut := func(t *testing.T, err error, since time.Time, want time.Duration) {
		t.Helper()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var ne net.Error
		require.ErrorAs(t, err, &ne)
		require.True(t, ne.Timeout())
		require.Equal(t, want, time.Since(since))
	}
	one := make([]byte, 1)
	twice(t, func(t *testing.T) {
		client, server := pair(t, memnet.Listen("a.test:1"))
		begin := time.Now()

		require.NoError(t, client.SetReadDeadline(begin.Add(time.Second)))
		_, err := client.Read(one)
		timedOut(t, err, begin, time.Second)
		_, err = client.Read(one)
		timedOut(t, err, begin, time.Second)

		// A new one revives the end; moving it reaches a read that waits.
		require.NoError(t, client.SetReadDeadline(begin.Add(time.Hour)))
		go func() {
			time.Sleep(time.Second)
			_ = client.SetReadDeadline(time.Unix(1, 0))
		}()
		_, err = client.Read(one)
		timedOut(t, err, begin, 2*time.Second)

		// One that is taken back never comes.
		require.NoError(t, client.SetReadDeadline(begin.Add(150*time.Second)))
		require.NoError(t, client.SetReadDeadline(begin.Add(200*time.Second)))
		_, err = client.Read(one)
		timedOut(t, err, begin, 200*time.Second)

		require.NoError(t, client.SetReadDeadline(time.Time{}))
		write(t, server, "x")
		require.Equal(t, "x", read(t, client, 1))

		require.NoError(t, client.SetDeadline(begin.Add(300*time.Second)))
		n, err := client.Write(make([]byte, 2*memnet.BufferSize))
		timedOut(t, err, begin, 300*time.Second)
		require.Equal(t, memnet.BufferSize, n)
	})
}

func TestResetCutsBothEndsAndLosesWhatWasOnTheWay(t *testing.T) {
	twice(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		client, server := pair(t, l)
		other, _ := pair(t, l)
		write(t, server, "lost")
		var waiting error
		go func() { _, waiting = server.Read(make([]byte, 1)) }()
		synctest.Wait()

		server.Reset()
		synctest.Wait()
		require.ErrorIs(t, waiting, syscall.ECONNRESET)
		_, err := client.Read(make([]byte, 4))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "write", op.Op)

		write(t, other, "the other connection is whole")
		l.Reset()
		_, err = other.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestClosingAnEndWakesItsReaderAndWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := pair(t, memnet.Listen("a.test:1"))
		var readErr, writeErr error
		go func() { _, readErr = client.Read(make([]byte, 1)) }()
		go func() { _, writeErr = client.Write(make([]byte, 2*memnet.BufferSize)) }()
		synctest.Wait()
		require.NoError(t, client.Close())
		synctest.Wait()
		require.ErrorIs(t, readErr, net.ErrClosed)
		require.ErrorIs(t, writeErr, net.ErrClosed)
	})
}

func TestItWorksOutsideABubble(t *testing.T) {
	l := memnet.Listen("a.test:1")
	client, server := pair(t, l)
	go func() { _, _ = io.Copy(server, server) }()
	write(t, client, "echo")
	require.Equal(t, "echo", read(t, client, 4))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.DialContext(ctx, "tcp", "x")
	require.ErrorIs(t, err, context.Canceled)
}
