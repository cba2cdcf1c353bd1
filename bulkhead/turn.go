package bulkhead

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Turn is for the kit's own packages: an admission to two bulkheads, as by
// [AcquireBoth], taken step by step by a caller who waits by a clock of its own, which is
// a simulation. It is one waiter in the queues, in order with those who call Acquire. The
// zero Turn asks nobody.
type Turn struct {
	bulkheads [2]*Bulkhead // the first to ask, then the second
	stage     int          // of them, the one that is asked; those before are held
	place     *waiter      // in its queue; nil if it has yet to be asked
	began     mono.Instant // of the first wait
	waiting   bool         // there was one
}

// NewTurn is for the kit's own packages: it returns the turn of an attempt. A nil
// bulkhead limits nothing. All callers must name two bulkheads in the same order.
func NewTurn(first, second *Bulkhead) Turn { return Turn{bulkheads: [2]*Bulkhead{first, second}} }

// PollAt goes on as far as it gets without a wait. It reports true once all
// permits are there, which are p's then. The error is a [*FullError], and nothing
// is held then. Otherwise the attempt waits: ask again after anyone has released
// a permit, and call LeaveAt at the latest by UntilAt.
func (t *Turn) PollAt(now mono.Instant, p *Pair) (bool, error) {
	for t.stage < len(t.bulkheads) {
		if err := t.step(now); err != nil {
			t.release()
			return false, err
		}
		if t.place != nil {
			return false, nil
		}
	}
	p.first, p.second = t.bulkheads[0].permit(), t.bulkheads[1].permit()
	*t = Turn{stage: len(t.bulkheads)}
	return true, nil
}

// step asks the bulkhead whose turn it is, or looks whether it has answered.
func (t *Turn) step(now mono.Instant) error {
	b := t.bulkheads[t.stage]
	switch {
	case t.place != nil:
		select {
		case <-t.place.granted:
		default:
			return nil
		}
	case b == nil || b.tryTake():
	case b.queue.Load() == 0:
		return b.full
	default:
		w, err := b.join()
		if err != nil {
			return err
		}
		if w != nil {
			t.place = w
			if !t.waiting {
				t.waiting, t.began = true, now
			}
			return nil
		}
	}
	t.place = nil
	t.stage++
	return nil
}

// UntilAt returns when the MaxWait of the bulkhead asked ends; false if it has
// none.
func (t *Turn) UntilAt() (mono.Instant, bool) {
	if t.place == nil {
		return mono.Instant{}, false
	}
	d := time.Duration(t.bulkheads[t.stage].maxWait.Load())
	return t.began.Add(d), d > 0
}

// LeaveAt gives the turn up at now. It returns the refusal: the attempt has waited
// out MaxWait if that is over, or else its own limit has passed. What the attempt
// holds goes to the next.
func (t *Turn) LeaveAt(now mono.Instant) error {
	if t.place == nil {
		return nil
	}
	b := t.bulkheads[t.stage]
	refusal := &FullError{key: b.name, reason: ContextEnded, ended: context.DeadlineExceeded, cause: context.DeadlineExceeded}
	if until, ok := t.UntilAt(); ok && !now.Before(until) {
		refusal = &FullError{key: b.name, reason: WaitedOut}
	}
	if !b.leave(t.place) {
		b.release()
	}
	t.place = nil
	t.release()
	return refusal
}

// release gives back what is held.
func (t *Turn) release() {
	for i := t.stage - 1; i >= 0; i-- {
		if b := t.bulkheads[i]; b != nil {
			b.release()
		}
	}
	*t = Turn{stage: len(t.bulkheads)}
}
