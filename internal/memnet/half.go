package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// BufferSize is how many bytes a connection holds in each direction. A writer
// waits once that many are written and not read.
const BufferSize = 64 << 10

// half is one direction of a connection: what one end has written and the
// other has not yet read.
type half struct {
	mu      sync.Mutex
	changed *sync.Cond // any field below

	buf []byte // unread bytes are buf[off:]
	off int

	held        bool // silent: nothing is delivered, the end neither
	writeClosed bool // no more bytes will come
	readClosed  bool // nobody will read them
	reset       bool // cut; what was on the way is lost
	writing     bool // a writer is at work, others wait

	read, write deadline
}

func newHalf(held bool) *half {
	h := &half{held: held}
	h.changed = sync.NewCond(&h.mu)
	return h
}

// set changes fields under the lock and wakes whoever waits for them.
func (h *half) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	h.changed.Broadcast()
}

func (h *half) readTo(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readClosed:
			return 0, net.ErrClosed
		case h.reset:
			return 0, os.NewSyscallError("read", syscall.ECONNRESET)
		case h.read.over:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case h.held:
		case h.off < len(h.buf):
			n := copy(p, h.buf[h.off:])
			h.off += n
			if h.off == len(h.buf) {
				h.buf, h.off = h.buf[:0], 0
			}
			h.changed.Broadcast()
			return n, nil
		case h.writeClosed:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

// writeFrom puts all of p into the buffer, in pieces if it has to wait for
// room. Pieces of other writers do not come between.
func (h *half) writeFrom(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	mine := false
	defer func() {
		if mine {
			h.writing = false
			h.changed.Broadcast()
		}
	}()
	for {
		switch {
		case h.writeClosed:
			return n, net.ErrClosed
		case h.reset:
			return n, os.NewSyscallError("write", syscall.ECONNRESET)
		case h.readClosed && !h.held:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case h.write.over:
			return n, os.ErrDeadlineExceeded
		case len(p) == 0:
			return n, nil
		}
		room := BufferSize - (len(h.buf) - h.off)
		if h.writing && !mine || room == 0 {
			h.changed.Wait()
			continue
		}
		h.writing, mine = true, true
		if h.off > 0 {
			h.buf = h.buf[:copy(h.buf, h.buf[h.off:])]
			h.off = 0
		}
		piece := p[:min(room, len(p))]
		h.buf = append(h.buf, piece...)
		n += len(piece)
		p = p[len(piece):]
		h.changed.Broadcast()
	}
}

// deadline is one of a half's two limits. Its fields are guarded by the half's
// lock.
type deadline struct {
	over  bool
	timer *time.Timer
}

// setDeadline moves d, which is h.read or h.write, to t; the zero time is none.
func (h *half) setDeadline(d *deadline, t time.Time) {
	h.set(func() {
		if d.timer != nil {
			d.timer.Stop()
		}
		d.timer, d.over = nil, false
		if t.IsZero() {
			return
		}
		wait := time.Until(t)
		if wait <= 0 {
			d.over = true
			return
		}
		var timer *time.Timer
		timer = time.AfterFunc(wait, func() {
			h.set(func() {
				// A timer that fired while it was being replaced is not the
				// deadline any more.
				if d.timer == timer {
					d.over = true
				}
			})
		})
		d.timer = timer
	})
}
