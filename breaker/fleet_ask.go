package breaker

import (
	"context"
	"errors"
)

var (
	errSilent = errors.New("breaker: the store did not answer in time")
	errDown   = errors.New("breaker: the store was not asked, since it does not answer")
	errBusy   = errors.New("breaker: too many commands of this worker are under way at the store")
)

// mostInFlight bounds the commands under way, so that a store that never
// returns holds so many goroutines and no more.
const mostInFlight = 64

// ask has the store do something aside and waits for it for Timeout at most.
func ask[T any](f *Fleet, do func(context.Context) (T, error)) (T, error) {
	var none T
	if f.inFlight.Add(1) > mostInFlight {
		f.inFlight.Add(-1)
		return none, errBusy
	}
	type answer struct {
		v   T
		err error
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.set.Timeout)
	answered := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("breaker: the store panicked")}
		defer func() {
			recover() // on a goroutine of ours; the store has failed, as told above
			f.inFlight.Add(-1)
			answered <- a
			cancel()
		}()
		a.v, a.err = do(ctx)
	}()
	select {
	case a := <-answered:
		return a.v, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answered: // at the last moment
		return a.v, a.err
	default:
		return none, errSilent
	}
}

// flush tells b's hooks what they have not been told, on a goroutine of its own.
func (f *Fleet) flush(b *Breaker) {
	go f.aside(func() {
		b.mu.Lock()
		b.unlock()
	})
}
