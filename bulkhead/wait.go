package bulkhead

import (
	"context"
	"time"
)

// waiter is one attempt in the queue.
type waiter struct {
	prev, next *waiter
	granted    chan struct{} // closed, under mu, when the waiter has its permit
	queued     bool          // guarded by mu
}

// line is the queue, a doubly linked list so that whoever gives up leaves at
// once. It is guarded by Bulkhead.mu.
type line struct {
	first, last *waiter
	len         int
}

func (l *line) push(w *waiter) {
	w.prev = l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	w.queued = true
	l.len++
}

func (l *line) remove(w *waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	l.len--
}

// enter queues for a permit if that is allowed. A nil error means that the
// caller has one. It has waited already for the time given, which MaxWait covers too.
func (b *Bulkhead) enter(ctx context.Context, waited time.Duration) error {
	if b.queue.Load() == 0 {
		return b.full
	}
	return b.wait(ctx, waited)
}

func (b *Bulkhead) wait(ctx context.Context, waited time.Duration) error {
	if ctx.Err() != nil {
		return b.ended(ctx)
	}
	w, err := b.join()
	if w == nil {
		return err
	}
	var timeout <-chan time.Time
	if d := time.Duration(b.maxWait.Load()); d > 0 {
		timer := time.NewTimer(d - waited)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-w.granted:
		if ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
	case <-timeout:
		if !b.leave(w) {
			return nil // the permit came at the last moment, and is still wanted
		}
		return &FullError{key: b.name, reason: WaitedOut}
	}
	if !b.leave(w) {
		b.release()
	}
	return b.ended(ctx)
}

func (b *Bulkhead) ended(ctx context.Context) error {
	return &FullError{key: b.name, reason: ContextEnded, ended: ctx.Err(), cause: context.Cause(ctx)}
}

// join puts a waiter at the end of the queue. It returns none if a permit was
// free after all, and an error if the queue is full.
func (b *Bulkhead) join() (*waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		s := b.state.Load()
		if s&waiting != 0 {
			break
		}
		if s/permit < b.limit.Load() {
			if b.state.CompareAndSwap(s, s+permit) {
				return nil, nil
			}
			continue
		}
		// If a permit comes back right now the swap fails, and the permit is
		// found in the next turn: the bit is set only while there is none.
		if b.state.CompareAndSwap(s, s|waiting) {
			break
		}
	}
	if int64(b.line.len) >= b.queue.Load() {
		b.settle()
		return nil, b.full
	}
	w := &waiter{granted: make(chan struct{})}
	b.line.push(w)
	return w, nil
}

// leave takes w out of the queue. It reports false if w already has a permit.
func (b *Bulkhead) leave(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !w.queued {
		return false
	}
	b.line.remove(w)
	b.settle()
	return true
}

// grant hands free permits to the head of the queue; mu is held.
func (b *Bulkhead) grant() {
	for b.line.len > 0 && b.state.Load()/permit < b.limit.Load() {
		// Nobody else takes permits while somebody waits.
		b.state.Add(permit)
		w := b.line.first
		b.line.remove(w)
		close(w.granted)
	}
	b.settle()
}

// settle lets newcomers pass again once the queue is empty; mu is held.
func (b *Bulkhead) settle() {
	if b.line.len == 0 {
		b.state.And(^waiting)
	}
}
