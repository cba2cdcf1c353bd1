package chaos

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// weather is what a proxy does to connections and to what passes them: odds in a
// thousand, for each connection or each piece of data.
type weather struct {
	name string

	refuse int           // the connection is reset at once
	late   time.Duration // until the connection is made, at most: later ones overtake it

	delay    int // a piece waits, up to 30 ms
	stall    int // a piece waits, up to 2 s
	truncate int // half a piece, then the end
	reset    int // no piece, but a reset
}

var calm = weather{name: "calm"}

var weathers = []weather{
	calm,
	{name: "slow", delay: 300, late: 50 * time.Millisecond},
	{name: "crossing", late: 200 * time.Millisecond, delay: 50},
	{name: "resets", reset: 30, delay: 50},
	{name: "cuts", truncate: 30, delay: 50},
	{name: "stalls", stall: 30},
	{name: "refusing", refuse: 500},
	{name: "down", refuse: 1000, reset: 300},
	{name: "storm", refuse: 100, late: 50 * time.Millisecond, delay: 100, stall: 10, truncate: 15, reset: 15},
}

// proxy passes connections on to a backend.
type proxy struct {
	listener net.Listener
	backend  string
	seed     uint64
	weather  atomic.Pointer[weather]
	done     chan struct{}
	running  sync.WaitGroup
	made     atomic.Uint64

	mu   sync.Mutex
	open map[*link]bool
}

// link is one connection, with its two ends.
type link struct {
	client, server *net.TCPConn
	broken         chan struct{}
	once           sync.Once
}

// end closes both sides, with a reset if they are to see one.
func (l *link) end(reset bool) {
	l.once.Do(func() {
		close(l.broken)
		for _, c := range []*net.TCPConn{l.client, l.server} {
			if c == nil {
				continue
			}
			if reset {
				_ = c.SetLinger(0)
			}
			_ = c.Close()
		}
	})
}

func startProxy(t *testing.T, backend string, seed uint64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, backend: backend, seed: seed, done: make(chan struct{}), open: map[*link]bool{}}
	p.weather.Store(&calm)
	p.running.Go(p.accept)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		draw := rand.New(rand.NewPCG(p.seed, p.made.Add(1)))
		p.running.Go(func() { p.connect(c.(*net.TCPConn), draw) })
	}
}

func (p *proxy) connect(c *net.TCPConn, draw *rand.Rand) {
	l := &link{client: c, broken: make(chan struct{})}
	p.mu.Lock()
	p.open[l] = true
	p.mu.Unlock()
	defer func() {
		l.end(true)
		p.mu.Lock()
		delete(p.open, l)
		p.mu.Unlock()
	}()
	w := p.weather.Load()
	if draw.IntN(1000) < w.refuse || w.late > 0 && !p.pause(l, draw, w.late) {
		return
	}
	s, err := net.DialTimeout("tcp", p.backend, time.Second)
	if err != nil {
		return
	}
	l.server = s.(*net.TCPConn)
	up, down := rand.New(rand.NewPCG(draw.Uint64(), 1)), rand.New(rand.NewPCG(draw.Uint64(), 2))
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(l, l.server, l.client, up) })
	pumps.Go(func() { p.pump(l, l.client, l.server, down) })
	pumps.Wait()
}

// pump passes on what comes, as the weather is.
func (p *proxy) pump(l *link, to, from *net.TCPConn, draw *rand.Rand) {
	var buf [8 << 10]byte
	for {
		n, err := from.Read(buf[:])
		w := p.weather.Load()
		roll := draw.IntN(1000)
		past := func(odds int) bool {
			roll -= odds
			return roll < 0
		}
		switch {
		case n == 0:
		case past(w.reset):
			l.end(true)
			return
		case past(w.truncate):
			_, _ = to.Write(buf[:n/2])
			l.end(false)
			return
		case past(w.stall):
			p.pause(l, draw, 2*time.Second)
		case past(w.delay):
			p.pause(l, draw, 30*time.Millisecond)
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				l.end(false)
				return
			}
		}
		if err != nil {
			_ = to.CloseWrite()
			return
		}
	}
}

// pause lets up to most pass, and reports whether the link is still there.
func (p *proxy) pause(l *link, draw *rand.Rand, most time.Duration) bool {
	timer := time.NewTimer(time.Duration(draw.Int64N(int64(most))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.broken:
	case <-p.done:
	}
	return false
}

func (p *proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	close(p.done)
	p.mu.Lock()
	for l := range p.open {
		l.end(true)
	}
	p.mu.Unlock()
	p.running.Wait()
}
