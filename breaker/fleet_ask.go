package breaker

import (
	"context"
	"errors"
	"time"
)

var (
	errSilent = errors.New("breaker: the store did not answer in time")
	errOver   = errors.New("breaker: the store was not told, since it means nothing any more")
	errDown   = errors.New("breaker: the store was not asked, since it does not answer")
	errBusy   = errors.New("breaker: too many commands of this worker are under way at the store")
)

// This many commands may be under way, so that a store that never returns holds that
// many goroutines and no more. Those who ask for a lock leave room for a refresh
// and for what the store is to be told: that many ask at once does not make it
// look as if it did not answer.
const (
	mostInFlight = 80
	mostClaims   = 64
	mostOrders   = mostInFlight + 16 // for those who force: they are few, and told if there is no room
)

// ask has the store do something aside, unless most commands are under way, and
// waits for it for Timeout at most.
func ask[T any](f *Fleet, most int32, do func(context.Context) (T, error)) (T, error) {
	return askFor(f, f.set.Timeout, most, do)
}

// askFor is ask with another limit.
func askFor[T any](f *Fleet, limit time.Duration, most int32, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	return askIn(ctx, cancel, f, most, do)
}

// askIn is ask until ctx is done. It cancels it once nobody needs it any more.
func askIn[T any](ctx context.Context, cancel func(), f *Fleet, most int32, do func(context.Context) (T, error)) (T, error) {
	var none T
	if f.inFlight.Add(1) > most {
		f.inFlight.Add(-1)
		cancel()
		return none, errBusy
	}
	type answer struct {
		v   T
		err error
	}
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
