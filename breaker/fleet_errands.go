package breaker

import (
	"context"
	"weak"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// errand is something to tell the store, off the caller's path.
type errand struct {
	// prepare returns the command as it is to be sent at now, or nil if what it
	// says means nothing any more.
	prepare func(now mono.Instant) command
	done    func(*Record, error) // called each time something comes of it

	// urgent goes first: somebody waits for it, or a lock is held until then.
	// must is sent for Timeout yet though the store does not seem to answer; kept
	// is done again, once it does, if it fails.
	urgent, must, kept bool
	posted             mono.Instant
}

// command has the store do something to one record.
type command func(context.Context) (Record, error)

// errands are those not yet done; guarded by Fleet.mu. There is one at most for the
// opening of a breaker, and one for each probe's end.
type errands struct {
	urgent, queue []errand
	failed        []errand // to be done again
	senders       int
}

// mostSenders leave room for a refresh beside those who ask for a lock.
const mostSenders = mostInFlight - mostClaims - 1

// post has an errand done soon. It may be called with a breaker's lock held.
func (f *Fleet) post(e errand) {
	e.posted = mono.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errands.add(e)
	f.send()
}

func (es *errands) add(e errand) {
	if e.urgent {
		es.urgent = append(es.urgent, e)
	} else {
		es.queue = append(es.queue, e)
	}
}

// next takes the errand to be done next from its queue.
func (es *errands) next() (e errand, ok bool) {
	for _, queue := range []*[]errand{&es.urgent, &es.queue} {
		if q := *queue; len(q) > 0 {
			e, q[0] = q[0], errand{}
			if *queue = q[1:]; len(q) == 1 {
				*queue = nil
			}
			return e, true
		}
	}
	return e, false
}

// send begins a sender if there is work for one more; f.mu is held.
func (f *Fleet) send() {
	if es := &f.errands; len(es.urgent)+len(es.queue) > 0 && es.senders < mostSenders {
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
		e, ok := f.errands.next()
		f.mu.Unlock()
		if !ok {
			return
		}
		rec, err := f.try(&e)
		if err != nil && e.kept {
			f.mu.Lock()
			f.errands.failed = append(f.errands.failed, e)
			f.mu.Unlock()
		}
		f.aside(func() { e.done(&rec, err) })
	}
}

// try does an errand, unless it is no use.
func (f *Fleet) try(e *errand) (Record, error) {
	now := mono.Now()
	do := e.prepare(now)
	switch {
	case do == nil:
		e.kept = false
		return Record{}, errOver
	case f.down.Load() && !(e.must && now.Sub(e.posted) <= f.set.Timeout):
		return Record{}, errDown
	}
	rec, err := ask(f, mostInFlight, do)
	if err != nil {
		f.suspect(err)
	} else {
		f.remember(&rec, mono.Now())
	}
	return rec, err
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
	failed := f.errands.failed
	f.errands.failed = nil
	f.mu.Unlock()
	for _, e := range failed {
		f.post(e)
	}
	now := mono.Now()
	for _, b := range held {
		b.mu.Lock()
		if ep := b.now.Load(); ep.tellable(now) {
			b.shareOpening(ep)
		}
		b.mu.Unlock()
	}
}
