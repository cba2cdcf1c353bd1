package bulkhead

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// Bulkhead is a counting semaphore with a bounded queue.
//
// Taking and returning a permit is one atomic operation each while nobody
// waits. From the moment that somebody waits until the queue is empty again,
// every permit goes to the head of the queue and newcomers join its end.
type Bulkhead struct {
	name string
	full *FullError // made once: a refusal at overload costs nothing

	limit, queue, maxWait atomic.Int64 // written under mu

	// For an adaptive limit; written under mu too.
	epoch atomic.Uint32 // of the permits given out now; zero if the limit is fixed
	calm  atomic.Bool   // at the ceiling, no failure in the window

	// state is permits in use x 2 + 1 if the queue is not empty. Permits are
	// taken without mu only while that bit is clear, and the bit changes under
	// mu only.
	state atomic.Int64

	mu   sync.Mutex
	line line
	aimd *aimd // nil while the limit has always been fixed
}

const (
	waiting = 1 // the bit of state
	permit  = 2 // one permit in state
)

// maxLimit is what state can count; more attempts than that do not run at once.
const maxLimit = math.MaxInt64 / permit

// New returns a bulkhead with that name and config, or the faults of the config
// in one error.
func New(name string, c Config) (*Bulkhead, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	b := &Bulkhead{name: name, full: &FullError{key: name, reason: QueueFull}}
	b.set(c)
	return b, nil
}

// Resize puts another config in force. Permits that are out stay valid: below
// a lower limit the bulkhead gets as they come back. Who waits keeps its place
// and its MaxWait, also in a queue that has become too long. A config with
// faults is refused, and the old one stays.
//
// An adaptive limit that stays one keeps what it has learned: it goes on from
// where it stands, within the new bounds, or at the new Limit if it stood at the
// old one.
func (b *Bulkhead) Resize(c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(c)
	b.grant()
	return nil
}

func (b *Bulkhead) set(c Config) {
	if c.off {
		c.Limit, c.Adaptive = math.MaxInt, Adaptive{}
	}
	b.limit.Store(b.adapt(c.Adaptive, min(int64(c.Limit), maxLimit)))
	b.queue.Store(int64(c.Queue))
	b.maxWait.Store(int64(c.MaxWait))
}

// Acquire takes a permit, waiting for one if the config says so. The caller
// must call the permit's Release once the attempt is over.
//
// The error is a [*FullError]. A context that is already done gets no place in
// the queue, but a permit that is free is given out without asking the context.
func (b *Bulkhead) Acquire(ctx context.Context) (Permit, error) {
	if !b.tryTake() {
		if err := b.enter(ctx, 0); err != nil {
			return Permit{}, err
		}
	}
	return Permit{b: b, epoch: b.epoch.Load()}, nil
}

// permit wraps a permit that was taken; nil has none to take.
func (b *Bulkhead) permit() Permit {
	if b == nil {
		return Permit{}
	}
	return Permit{b: b, epoch: b.epoch.Load()}
}

// tryTake takes a permit if one is free and nobody waits.
func (b *Bulkhead) tryTake() bool {
	for {
		s := b.state.Load()
		if s&waiting != 0 || s/permit >= b.limit.Load() {
			return false
		}
		if b.state.CompareAndSwap(s, s+permit) {
			return true
		}
	}
}

// release returns a permit and, if anybody waits, hands it on.
func (b *Bulkhead) release() {
	if b.state.Add(-permit)&waiting != 0 {
		b.handOn()
	}
}

func (b *Bulkhead) handOn() {
	b.mu.Lock()
	b.grant()
	b.mu.Unlock()
}

// Name returns the name given to [New].
func (b *Bulkhead) Name() string { return b.name }

// InUse returns how many permits are out.
func (b *Bulkhead) InUse() int { return int(b.state.Load() / permit) }

// Waiting returns how many attempts wait for a permit.
func (b *Bulkhead) Waiting() int {
	if b.state.Load()&waiting == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.line.len
}

// Idle reports whether no permit is out and nobody waits.
func (b *Bulkhead) Idle() bool { return b.state.Load() == 0 }

// noCopy makes vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Permit is the right to run one attempt. It is not to be copied. The zero
// Permit stands for none.
type Permit struct {
	_     noCopy
	b     *Bulkhead
	done  atomic.Bool
	epoch uint32 // in which it was given out; atomic, zero once booked
}

// move makes to, the zero Permit, what p is, and p the zero Permit.
func (p *Permit) move(to *Permit) {
	to.b, to.epoch = p.b, atomic.LoadUint32(&p.epoch)
	to.done.Store(p.done.Load())
	p.b = nil
}

// Release gives the permit back. Only the first call does anything, from
// whatever goroutine it comes; on a zero Permit none does.
func (p *Permit) Release() {
	if p.b != nil && !p.done.Swap(true) {
		p.b.release()
	}
}

func (p *Permit) releaseAlone() {
	if b := p.b; b != nil && !p.done.Load() {
		p.b = nil
		b.release()
	}
}
