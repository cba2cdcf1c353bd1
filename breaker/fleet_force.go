package breaker

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// ForceOpen forces the circuit of key open in the whole fleet until Release: in
// this worker at once, in the others once they have heard of it. It is apart
// from [Breaker.ForceOpen], which is this process's alone: a breaker is open
// while either holds, and each is ended by its own release only. It waits for
// the store until ctx is done, and returns its error; then nothing is forced here,
// and elsewhere only if the store has heard of it all the same.
func (f *Fleet) ForceOpen(ctx context.Context, key, reason string) error {
	return f.order(ctx, key, Order{Do: ForceNow, Note: reason})
}

// Release ends a ForceOpen of the fleet: the circuit is open for a full first
// cooldown of the Config that this process has for key, or the default one. If
// it is not forced open nothing happens to it. A store that has just lost the
// ForceOpen, by a fail-over to an older copy, is not given it again.
func (f *Fleet) Release(ctx context.Context, key string) error {
	o := Order{Do: ForceOver}
	r := compile(Config{})
	f.each(key, func(b *Breaker) { r = b.now.Load().rules })
	o.Nth, o.Reason, o.Cooldown = 1, ReasonFleetReleased, r.cooldown(1, r.spread(), 0)
	o.Left = o.Cooldown
	return f.order(ctx, key, o)
}

// forceKept is how long the record of a forced circuit outlives the last worker
// that is in use.
const forceKept = 7 * 24 * time.Hour

func (f *Fleet) order(ctx context.Context, key string, o Order) error {
	f.mu.Lock()
	k := f.known[key]
	f.mu.Unlock()
	o.Worker, o.Keep, o.Known = f.set.Worker, max(forceKept, 2*o.Left), max(f.revision.Load(), k.Revision)
	if o.Do == ForceOver && k.Forced {
		o.Was = k.Revision
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	rec, err := askIn(ctx, cancel, f, mostOrders, f.forcing(key, o))
	if err == errSilent {
		return fmt.Errorf("%w: %w", err, context.Cause(ctx)) // it is left behind
	}
	if err != nil {
		return err
	}
	now := mono.Now()
	f.remember(&rec, now)
	f.deliver(&rec, now)
	return nil
}

// missed deals with a record that was there and is not any more. It says nothing
// about the circuit: what is open here stays open, and is written again. A
// forced circuit was released so long ago that the record of that has expired;
// missed returns what there is to be told of it then.
func (f *Fleet) missed(rec *Record) (over *Record) {
	f.each(rec.Key, func(b *Breaker) { f.holds(rec.Key, b) })
	if rec.Forced {
		over = &Record{Key: rec.Key, Mark: Mark{rec.Epoch, rec.Revision + 1}}
	}
	return over
}

// forceAgain forces a circuit that the store does not have as forced, though its
// record would not have expired: the store has lost data.
func (f *Fleet) forceAgain(rec *Record) {
	f.post(errand{
		prepare: func(mono.Instant) command {
			f.mu.Lock()
			defer f.mu.Unlock()
			if k := f.known[rec.Key]; !k.Forced || k.Revision != rec.Revision {
				return nil // released since, or forced anew
			}
			return f.forcing(rec.Key, Order{
				Opening: Opening{Worker: f.set.Worker, Known: rec.Revision, Keep: forceKept}, Do: ForceAgain, Note: rec.Note,
			})
		},
		done: func(found *Record, err error) {
			if err == nil {
				f.deliver(found, mono.Now())
			}
		},
		kept: true, // nobody else would notice before all is read again
	})
}

// keepForced has records of forced circuits kept that would expire in the second
// half of their time. One worker in sixteen does it.
func (f *Fleet) keepForced(now mono.Instant) {
	f.mu.Lock()
	var keys []string
	for key, k := range f.known {
		if k.Forced && k.Keep-now.Sub(k.at) < forceKept/2 && f.draw() < 1./16 {
			keys = append(keys, key)
		}
	}
	f.mu.Unlock()
	for _, key := range keys {
		f.post(errand{
			prepare: func(mono.Instant) command {
				return f.forcing(key, Order{
					Opening: Opening{Worker: f.set.Worker, Known: f.revision.Load(), Keep: forceKept}, Do: ForceKept,
				})
			},
			done: func(*Record, error) {},
		})
	}
}

func (f *Fleet) forcing(key string, o Order) command {
	return func(ctx context.Context) (Record, error) { return f.set.Store.Force(ctx, f.set.Space, key, o) }
}
