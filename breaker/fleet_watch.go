package breaker

import (
	"context"
	"errors"
)

var errWatchPanicked = errors.New("breaker: the store's Watch panicked")

// watch begins to listen for changes if that is asked for and possible; f.mu is
// held.
func (f *Fleet) watch() {
	w, ok := f.set.Store.(Watcher)
	if !f.set.Push || !ok || f.cycle.watching {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cycle.watching, f.cycle.unwatch = true, cancel
	go func() {
		var err error
		defer func() {
			if v := recover(); v != nil {
				err = errWatchPanicked
			}
			cancel()
			f.mu.Lock()
			f.cycle.watching = false // the next use but at most one a refresh begins anew
			f.mu.Unlock()
			if err != nil {
				f.stats.fail(err)
			}
		}()
		err = w.Watch(ctx, f.set.Space, f.wake)
		if ctx.Err() != nil {
			err = nil
		}
	}()
}
