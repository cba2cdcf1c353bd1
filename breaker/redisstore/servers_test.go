package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// program is the server to run: the one that HOLDFAST_REDIS_SERVER names, by its
// name or path, or else redis-server or valkey-server. Where there is none the tests
// make do with one in this process, unless HOLDFAST_REQUIRE_REDIS is set or a name
// was given: then that is a failure.
var program = sync.OnceValues(func() (string, error) {
	if name := os.Getenv("HOLDFAST_REDIS_SERVER"); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("HOLDFAST_REDIS_SERVER: %w", err)
		}
		return path, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no redis-server to run: install it (Debian: apt-get install redis-server)")
})

// installed reports whether there is a server program.
func installed(t *testing.T) bool {
	t.Helper()
	path, err := program()
	if err != nil && os.Getenv("HOLDFAST_REQUIRE_REDIS")+os.Getenv("HOLDFAST_REDIS_SERVER") != "" {
		t.Fatal(err)
	}
	return path != ""
}

// startServer starts a server that keeps nothing on disk and returns its address
// once it answers.
func startServer(t testing.TB, more ...string) string {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	require.NoError(t, err)
	cmd := exec.Command(path, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--daemonize", "no",
	}, more...)...)
	cmd.Stdout, cmd.Stderr = output, output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for begin := time.Now(); ; {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			break
		}
		text, _ := os.ReadFile(output.Name())
		require.Less(t, time.Since(begin), 10*time.Second, "the server does not answer: %s", text)
		time.Sleep(5 * time.Millisecond) // another process starts, on its own clock
	}
	c := client(t, addr)
	require.NoError(t, c.Ping(t.Context()).Err())
	return addr
}

// options are those of a client that gives up soon.
func options(addr string) *redis.Options {
	return &redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1}
}

// embedded is a server in this process that is reached without a socket, and so
// works in a bubble.
func embedded(t testing.TB) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	o := options("127.0.0.1:1") // never dialled; a name would be looked up
	o.Dialer = func(context.Context, string, string) (net.Conn, error) { return m.Dial() }
	c := redis.NewClient(o)
	t.Cleanup(func() {
		c.Close()
		m.Close()
	})
	return m, c
}

// server is a real one, or else one in this process, with a socket.
func server(t *testing.T) string {
	t.Helper()
	if installed(t) {
		return startServer(t)
	}
	return miniredis.RunT(t).Addr()
}

func client(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(options(addr))
	t.Cleanup(func() { c.Close() })
	return c
}

func init() { redis.SetLogger(silent{}) } // the tests cut connections

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
