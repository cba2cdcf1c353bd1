package memnet

import (
	"errors"
	"io"
	"net"
	"time"
)

// Addr is an address on this network.
type Addr string

// Network returns "mem".
func (Addr) Network() string { return "mem" }

// String returns the address as it was given to Listen, or made up for a
// client: one for each connection.
func (a Addr) String() string { return string(a) }

// Conn is one end of a connection. Its errors are those of a TCP connection:
// a *net.OpError around net.ErrClosed, os.ErrDeadlineExceeded,
// syscall.ECONNRESET or syscall.EPIPE; and io.EOF as it is.
//
// Unlike TCP, closing an end with bytes unread does not reset the connection,
// and the other end's next write fails at once.
type Conn struct {
	in, out       *half
	local, remote Addr
	link          *link
	closed        bool // guarded by the listener's lock
}

// link is a connection as its listener sees it.
type link struct {
	listener       *Listener
	client, server *Conn
}

func newLink(l *Listener, client Addr, held bool) *link {
	up, down := newHalf(held), newHalf(held)
	k := &link{listener: l}
	k.client = &Conn{in: down, out: up, local: client, remote: l.addr, link: k}
	k.server = &Conn{in: up, out: down, local: l.addr, remote: client, link: k}
	return k
}

func (k *link) silence(held bool) {
	for _, h := range []*half{k.client.in, k.client.out} {
		h.set(func() { h.held = held })
	}
}

func (k *link) reset() {
	for _, h := range []*half{k.client.in, k.client.out} {
		h.set(func() { h.reset = true })
	}
}

// Read waits for bytes, the end, or the read deadline.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.readTo(p)
	return n, c.opError("read", err)
}

// Write returns once all of p is in the buffer, which it may outgrow: then it
// waits for the reader. Writes at the same time do not mix.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.writeFrom(p)
	return n, c.opError("write", err)
}

// Close ends both directions. The other end reads what was written, then
// io.EOF.
func (c *Conn) Close() error {
	if !c.link.listener.forget(c) {
		return c.opError("close", net.ErrClosed)
	}
	// This end first: it must not read what the other writes on seeing the end.
	c.in.set(func() { c.in.readClosed = true })
	c.out.set(func() { c.out.writeClosed = true })
	// No timer stays behind.
	c.in.setDeadline(&c.in.read, time.Time{})
	c.out.setDeadline(&c.out.write, time.Time{})
	return nil
}

// CloseWrite ends the direction away from this end. The other end reads what
// was written, then io.EOF, and may go on writing.
func (c *Conn) CloseWrite() error {
	c.out.set(func() { c.out.writeClosed = true })
	return nil
}

// Reset cuts the connection: bytes on the way are lost, and both ends' reads
// and writes fail with syscall.ECONNRESET, until they close.
func (c *Conn) Reset() { c.link.reset() }

// LocalAddr returns this end's address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines; the zero time is none.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline limits the Reads that wait now or come later.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.read, t)
	return nil
}

// SetWriteDeadline limits the Writes that wait now or come later. One that is
// cut short may have written a part.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.write, t)
	return nil
}

func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}
