package redisstore_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and a server and does what networks do.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	target   string
	mode     mode
	conns    []net.Conn
}

type mode int

const (
	passes  mode = iota
	hangs        // accepts, reads, and answers nothing
	drops        // cuts every connection
	garbage      // answers what is no protocol
	lies         // answers in the protocol, but nonsense
)

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, target: target}
	t.Cleanup(func() {
		l.Close()
		p.set(drops)
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// set changes the mode and cuts what was connected under another.
func (p *proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	p.cut()
}

// failOver has another server answer.
func (p *proxy) failOver(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	p.cut()
}

func (p *proxy) cut() {
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) serve(c net.Conn) {
	p.mu.Lock()
	m, target := p.mode, p.target
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	defer c.Close()
	answer := map[mode]string{garbage: "HTTP/1.1 400 Bad Request\r\n\r\n<html>\x00\xff", lies: "*2\r\n:1\r\n$3\r\nabc\r\n"}[m]
	switch m {
	case drops:
		return
	case hangs, garbage, lies:
		buffer := make([]byte, 4096)
		for {
			if _, err := c.Read(buffer); err != nil {
				return
			}
			io.WriteString(c, answer)
		}
	}
	s, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, s)
	p.mu.Unlock()
	go func() {
		io.Copy(s, c)
		s.Close()
	}()
	io.Copy(c, s)
}
