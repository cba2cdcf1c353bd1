package bulkhead

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Pair is the right to run one attempt under two bulkheads: that of its method
// or resource, and that of its target. It is used as a [Permit] is, and is not to
// be copied. The zero Pair stands for none.
type Pair struct {
	first, second Permit
}

// AcquireBoth takes a permit of first and then one of second, waiting for each
// if its config says so; the MaxWait of second counts from the start of both
// waits. If second refuses, first has its permit back. A nil bulkhead limits
// nothing.
//
// All callers must name two bulkheads in the same order: who waits for second
// holds a permit of first.
func AcquireBoth(ctx context.Context, first, second *Bulkhead) (p Pair, err error) {
	err = p.Acquire(ctx, first, second)
	return // by name: a Pair is not to be copied
}

// Acquire is for the kit's own packages: [AcquireBoth] for a Pair that has its place
// already, so that an attempt's record need not be copied to. p is the zero Pair, and
// stays so if it is refused.
func (p *Pair) Acquire(ctx context.Context, first, second *Bulkhead) error {
	var waited time.Duration
	if first != nil && !first.tryTake() {
		if first.queue.Load() == 0 {
			return first.full
		}
		began := mono.Now()
		if err := first.enter(ctx, 0); err != nil {
			return err
		}
		waited = mono.Now().Sub(began)
	}
	if second != nil && !second.tryTake() {
		if err := second.enter(ctx, waited); err != nil {
			if first != nil {
				first.release()
			}
			return err
		}
	}
	p.first, p.second = first.permit(), second.permit()
	return nil
}

// Try is [AcquireBoth] for a caller who does not wait: it reports whether the permits
// were free. p is the zero Pair, and stays so if they were not.
func (p *Pair) Try(first, second *Bulkhead) bool {
	if second == nil && first != nil {
		if !first.tryTake() {
			return false
		}
		p.first.b, p.first.epoch = first, first.epoch.Load()
		return true
	}
	if first != nil && !first.tryTake() {
		return false
	}
	if second != nil && !second.tryTake() {
		if first != nil {
			first.release()
		}
		return false
	}
	p.first, p.second = first.permit(), second.permit()
	return true
}

// Move is for the kit's own packages: it makes to, the zero Pair, what p is, and p the
// zero Pair. Nobody may release p meanwhile.
func (p *Pair) Move(to *Pair) {
	p.first.move(&to.first)
	p.second.move(&to.second)
}

// Book is [Permit.Book] for both.
func (p *Pair) Book(failed bool) {
	if p.first.adapts() || p.second.adapts() {
		p.first.Book(failed)
		p.second.Book(failed)
	}
}

// Release is [Permit.Release] for both.
func (p *Pair) Release() {
	// In this order: whom the first lets in goes on to ask the second.
	p.second.Release()
	p.first.Release()
}

// ReleaseAlone is for the kit's own packages: Release for a caller who alone has the
// pair, and has booked it.
func (p *Pair) ReleaseAlone() {
	if p.second.b != nil {
		p.second.releaseAlone()
	}
	p.first.releaseAlone()
}
