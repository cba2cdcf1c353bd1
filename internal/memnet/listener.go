package memnet

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Listener is one address of the network, and the switches of its wire. It is
// a net.Listener, and it dials itself.
type Listener struct {
	addr Addr

	mu      sync.Mutex
	arrived *sync.Cond // pending or closed
	pending []*link    // dialled, not yet accepted
	links   map[*link]struct{}
	dials   int
	opened  int

	closed, refuse, silent bool
	hang                   chan struct{} // non-nil while dials wait; closed when they go on
}

// Listen returns a listener for addr, which is a name of any form; tests that
// split it want "host:port".
func Listen(addr string) *Listener {
	l := &Listener{addr: Addr(addr), links: map[*link]struct{}{}}
	l.arrived = sync.NewCond(&l.mu)
	return l
}

// Accept waits for the next connection. After Close it fails with
// net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) == 0 && !l.closed {
		l.arrived.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: "mem", Addr: l.addr, Err: net.ErrClosed}
	}
	k := l.pending[0]
	l.pending = l.pending[1:]
	return k.server, nil
}

// Close stops listening: later dials are refused, connections nobody accepted
// are reset, accepted ones stay.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return &net.OpError{Op: "close", Net: "mem", Addr: l.addr, Err: net.ErrClosed}
	}
	l.closed = true
	dropped := l.pending
	l.pending = nil
	l.endHang()
	l.arrived.Broadcast()
	l.mu.Unlock()

	for _, k := range dropped {
		k.reset()
		_ = k.server.Close()
	}
	return nil
}

// Addr returns the address given to Listen.
func (l *Listener) Addr() net.Addr { return l.addr }

// Dial is DialContext without a limit.
func (l *Listener) Dial() (*Conn, error) { return l.dial(context.Background()) }

// DialContext connects to this listener, whatever the network and the address
// say, so that it fits http.Transport. It does not wait for Accept. Its errors
// are *net.OpError with Op "dial"; the refusal wraps syscall.ECONNREFUSED.
func (l *Listener) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *Listener) dial(ctx context.Context) (*Conn, error) {
	l.mu.Lock()
	l.dials++
	for l.hang != nil {
		released := l.hang
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-released:
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			break
		}
	}
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, dialError(l.addr, err)
	}
	if l.refuse || l.closed {
		return nil, dialError(l.addr, os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	l.opened++
	k := newLink(l, Addr("client:"+strconv.Itoa(l.opened)), l.silent)
	l.links[k] = struct{}{}
	l.pending = append(l.pending, k)
	l.arrived.Signal()
	return k.client, nil
}

func dialError(addr net.Addr, err error) error {
	return &net.OpError{Op: "dial", Net: "mem", Addr: addr, Err: err}
}

// Refuse says whether dials fail as if nobody listened. Connections stay.
func (l *Listener) Refuse(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = on
}

// Hang says whether dials wait, until their context ends or Hang is switched
// off, as if every packet on the way were lost. Connections stay.
func (l *Listener) Hang(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !on {
		l.endHang()
	} else if l.hang == nil && !l.closed {
		l.hang = make(chan struct{})
	}
}

func (l *Listener) endHang() {
	if l.hang != nil {
		close(l.hang)
		l.hang = nil
	}
}

// Silence says whether the wire is silent. Then dials succeed and writes fill
// the buffers, but no connection, old or new, delivers a byte or an end in
// either direction; deadlines and Reset work as ever. What was held back is
// delivered when the silence is over.
func (l *Listener) Silence(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = on
	for k := range l.links {
		k.silence(on)
	}
}

// Reset cuts every connection; see [Conn.Reset].
func (l *Listener) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.links {
		k.reset()
	}
}

// Dials returns how many dials were begun, refused ones included.
func (l *Listener) Dials() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}

// Accepted returns how many connections were made.
func (l *Listener) Accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

// Open returns how many connections neither end has closed.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for k := range l.links {
		if !k.client.closed && !k.server.closed {
			n++
		}
	}
	return n
}

// forget notes that an end is closed, and drops the connection once both are.
// It reports whether the end was open.
func (l *Listener) forget(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.closed {
		return false
	}
	c.closed = true
	if c.link.client.closed && c.link.server.closed {
		delete(l.links, c.link)
	}
	return true
}

// Net is a network of several listeners by the address they are dialled at. A
// copy of the map shares it; it must not change while it is used.
type Net map[string]*Listener

// DialContext connects to the listener at address. For an unknown one it fails
// as a name look-up does: a *net.OpError with Op "dial" around a *net.DNSError.
func (n Net) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if l := n[address]; l != nil {
		return l.DialContext(ctx, network, address)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return nil, dialError(Addr(address), &net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
}
