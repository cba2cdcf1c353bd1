package memnet_test

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/memnet"
)

// requireDialError requires what net.Dialer returns, and its cause.
func requireDialError(t *testing.T, err, cause error) {
	t.Helper()
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "dial", op.Op)
	require.ErrorIs(t, err, cause)
}

func TestRefuse(t *testing.T) {
	twice(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		client, server := pair(t, l)
		l.Refuse(true)
		conn, err := l.DialContext(t.Context(), "tcp", "a.test:1")
		requireDialError(t, err, syscall.ECONNREFUSED)
		require.Nil(t, conn)
		write(t, client, "old ones stay")
		require.Equal(t, "old ones", read(t, server, 8))
		l.Refuse(false)
		pair(t, l)
		require.Equal(t, 3, l.Dials())
		require.Equal(t, 2, l.Accepted())
	})
}

func TestHang(t *testing.T) {
	twice(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		l.Hang(true)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := l.DialContext(ctx, "tcp", "a.test:1")
		requireDialError(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(begin))

		go func() {
			time.Sleep(time.Minute)
			l.Hang(false)
		}()
		pair(t, l)
		require.Equal(t, 2*time.Minute, time.Since(begin))
		require.Equal(t, 1, l.Accepted())

		l.Hang(true)
		go func() {
			time.Sleep(time.Minute)
			_ = l.Close()
		}()
		_, err = l.Dial()
		requireDialError(t, err, syscall.ECONNREFUSED)
	})
}

func TestSilenceHoldsBytesAndEndsBack(t *testing.T) {
	twice(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		oldClient, oldServer := pair(t, l)
		write(t, oldServer, "1")
		l.Silence(true)
		newClient, newServer := pair(t, l)
		for _, c := range []*memnet.Conn{oldClient, newClient} {
			write(t, c, "heard later")
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Hour)))
			_, err := c.Read(make([]byte, 1))
			require.ErrorContains(t, err, "timeout")
		}
		require.NoError(t, newServer.Close())
		write(t, newClient, "!") // the closed end is as silent as the rest
		require.NoError(t, oldClient.CloseWrite())

		l.Silence(false)
		got, err := io.ReadAll(oldServer)
		require.NoError(t, err)
		require.Equal(t, "heard later", string(got))
		require.NoError(t, oldClient.SetReadDeadline(time.Time{}))
		require.Equal(t, "1", read(t, oldClient, 1))
		_, err = newClient.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestSilenceOfAFullBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		client, _ := pair(t, l)
		l.Silence(true)
		require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := client.Write(make([]byte, memnet.BufferSize+1))
		require.ErrorContains(t, err, "timeout")
		require.Equal(t, memnet.BufferSize, n)
		l.Reset()
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestCountsOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		a, b := pair(t, l)
		c, d := pair(t, l)
		require.Equal(t, 2, l.Open())
		require.NoError(t, a.Close())
		require.Equal(t, 1, l.Open())
		require.NoError(t, b.Close())
		require.NoError(t, d.Close())
		require.Equal(t, 0, l.Open())
		require.NoError(t, c.Close())
		require.Equal(t, 2, l.Accepted())
	})
}

func TestAClosedListenerKeepsAcceptedConnectionsOnly(t *testing.T) {
	twice(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		client, server := pair(t, l)
		unaccepted, err := l.Dial()
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.ErrorIs(t, l.Close(), net.ErrClosed)
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = l.Dial()
		requireDialError(t, err, syscall.ECONNREFUSED)
		_, err = unaccepted.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		write(t, client, "x")
		require.Equal(t, "x", read(t, server, 1))
	})
}

func TestCloseWakesAccept(t *testing.T) {
	twice(t, func(t *testing.T) {
		l := memnet.Listen("a.test:1")
		var err error
		go func() { _, err = l.Accept() }()
		synctest.Wait()
		require.NoError(t, l.Close())
		synctest.Wait()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestANetDialsByAddressAndKnowsNoOtherNames(t *testing.T) {
	twice(t, func(t *testing.T) {
		n := memnet.Net{"a.test:1": memnet.Listen("a.test:1"), "b.test:1": memnet.Listen("b.test:1")}
		conn, err := n.DialContext(t.Context(), "tcp", "b.test:1")
		require.NoError(t, err)
		require.Equal(t, "b.test:1", conn.RemoteAddr().String())
		require.Equal(t, 0, n["a.test:1"].Dials())

		for _, address := range []string{"c.test:1", "c.test"} {
			_, err = n.DialContext(t.Context(), "tcp", address)
			var dns *net.DNSError
			require.ErrorAs(t, err, &dns)
			require.Equal(t, "c.test", dns.Name)
			require.True(t, dns.IsNotFound)
			requireDialError(t, err, dns)
		}
	})
}
