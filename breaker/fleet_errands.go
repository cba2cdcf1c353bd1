package breaker

import (
	"context"
	"weak"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// errand is something to tell the store, off the caller's path.
type errand struct {
	do   func(context.Context) (Record, error)
	done func(*Record, error) // called once, whatever comes of it
	due  mono.Instant         // the store is not told later than that
	must bool                 // it is told though it does not seem to answer
}

// errands are those not yet done; guarded by Fleet.mu.
type errands struct {
	queue   []errand
	senders int
}

const mostSenders = 8

// post has an errand done soon. It may be called with a breaker's lock held.
func (f *Fleet) post(e errand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errands.queue = append(f.errands.queue, e)
	f.send()
}

// send begins a sender if there is work for one more; f.mu is held.
func (f *Fleet) send() {
	if es := &f.errands; len(es.queue) > 0 && es.senders < mostSenders {
		es.senders++
		go f.run()
	}
}

// run does errands until there are none.
func (f *Fleet) run() {
	defer func() { // also if a hook ends the goroutine
		f.mu.Lock()
		defer f.mu.Unlock()
		f.errands.senders--
		f.send()
	}()
	for {
		f.mu.Lock()
		es := &f.errands
		if len(es.queue) == 0 {
			es.queue = nil
			f.mu.Unlock()
			return
		}
		e := es.queue[0]
		es.queue = es.queue[1:]
		f.mu.Unlock()

		var rec Record
		err := errDown
		switch {
		case f.down.Load() && !e.must:
		case mono.Now() > e.due:
			err = errSilent
		default:
			if rec, err = ask(f, mostInFlight, e.do); err != nil {
				f.suspect(err)
			} else {
				f.remember(&rec, mono.Now())
			}
		}
		f.aside(func() { e.done(&rec, err) })
	}
}

// holds notes that b is open and the store may not know it.
func (f *Fleet) holds(key string, b *Breaker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unsaved.set(key, weak.Make(b), alive[Breaker])
}

// settled ends holds.
func (f *Fleet) settled(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unsaved.all, key)
}

// resend tells the store again what it may not know.
func (f *Fleet) resend() {
	f.mu.Lock()
	held := make([]*Breaker, 0, len(f.unsaved.all))
	for _, p := range f.unsaved.all {
		if b := p.Value(); b != nil {
			held = append(held, b)
		}
	}
	clear(f.unsaved.all)
	f.mu.Unlock()
	now := mono.Now()
	for _, b := range held {
		b.mu.Lock()
		if ep := b.now.Load(); ep.state() == Open && !ep.out.share.alone && now < ep.out.until {
			b.shareOpening(ep, now)
		}
		b.mu.Unlock()
	}
}
