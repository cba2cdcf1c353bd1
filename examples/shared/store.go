package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// server is the store that the workers share on.
type server struct {
	addr string
	what string // in words
	kind string // in the figures: redis or embedded
	stop func()
}

// startStore uses the server at addr, or starts one.
func startStore(addr string) (server, error) {
	if addr != "" {
		c, err := net.DialTimeout("tcp", addr, 2*time.Second)
		if err != nil {
			return server{}, fmt.Errorf("-redis: %w", err)
		}
		_ = c.Close()
		return server{addr, "the server at " + addr, "redis", func() {}}, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return startProgram(path)
		}
	}
	m, err := miniredis.Run()
	if err != nil {
		return server{}, err
	}
	return server{m.Addr(), "inside this process, since no redis-server is installed", "embedded", m.Close}, nil
}

func startProgram(path string) (server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return server{}, err
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	dir, err := os.MkdirTemp("", "holdfast-shared")
	if err != nil {
		return server{}, err
	}
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		return server{}, err
	}
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return server{addr, path + ", started for this", "redis", stop}, nil
		} else if time.Since(begin) > 10*time.Second {
			stop()
			return server{}, fmt.Errorf("%s does not answer: %w", path, err)
		}
	}
}
