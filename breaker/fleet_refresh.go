package breaker

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// cycle is the state of the refreshes, guarded by Fleet.mu: at any time there is
// at most one timer or one refresh. It ends when nothing was used since the last
// one, and the next use begins it again.
type cycle struct {
	running    bool // there is a timer or a refresh
	refreshing bool
	woken      bool // a change was announced, or the store is suspect
	timer      *time.Timer
	due        mono.Instant // of the next refresh, if anything is used
	last       mono.Instant // end of the last refresh
	lastWoken  mono.Instant // end of the last one that did not wait for its time
	used       mono.Instant // when the last use was found
	failing    mono.Instant // since when, if fails > 0
	fails      int
	count      int // refreshes since all records were read

	watching bool
	unwatch  context.CancelFunc
}

const (
	// wholeEvery is after how many refreshes all records are read and not only
	// what has changed: a store that failed over to an older copy of itself may
	// have lost changes in the middle.
	wholeEvery = 64

	// A store that has not answered for patience is asked less and less often,
	// at last every longestPause.
	patience     = time.Minute
	longestPause = 15 * time.Second

	// watchIdle is how long it listens for changes while nothing is used.
	watchIdle = 30 * time.Second

	// wakeGap is the least time between two reads of what was announced.
	wakeGap = 200 * time.Millisecond
)

// touch notes that a breaker is in use.
func (f *Fleet) touch() {
	if f.used.Load() == 0 {
		f.use()
	}
}

func (f *Fleet) use() {
	f.used.Store(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := &f.cycle; !c.running {
		f.schedule(c.due)
	}
	f.watch()
}

// schedule has the next tick at an instant; f.mu is held.
func (f *Fleet) schedule(due mono.Instant) {
	c := &f.cycle
	c.running, c.due = true, due
	wait := max(due.Sub(mono.Now()), 0)
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, f.tick)
	} else {
		c.timer.Reset(wait)
	}
}

// wake brings the next refresh forward.
func (f *Fleet) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &f.cycle
	if c.woken = true; !c.refreshing {
		f.schedule(f.wakeAt())
	}
}

func (f *Fleet) wakeAt() mono.Instant {
	return mono.Later(mono.Now(), f.cycle.lastWoken.Add(min(wakeGap, f.set.Refresh)))
}

// tick is the timer's function.
func (f *Fleet) tick() {
	f.mu.Lock()
	c, now := &f.cycle, mono.Now()
	switch used := f.used.Swap(0) != 0; {
	case c.refreshing:
		f.mu.Unlock()
		return
	case used:
		c.used = now
	case c.woken:
	case c.watching && now.Sub(c.used) < watchIdle:
		f.schedule(now.Add(f.set.Refresh))
		f.mu.Unlock()
		return
	default:
		c.running = false
		if c.watching {
			c.unwatch()
		}
		f.mu.Unlock()
		return
	}
	woken := c.woken
	c.woken, c.refreshing = false, true
	f.mu.Unlock()

	defer func() { // also if a hook ends the goroutine
		f.mu.Lock()
		defer f.mu.Unlock()
		c.refreshing = false
		if c.last = mono.Now(); woken {
			c.lastWoken = c.last
		}
		due := c.last.Add(f.pause())
		if c.woken && c.fails == 0 {
			due = f.wakeAt()
		}
		f.schedule(due)
	}()
	f.refresh()
}

// pause returns how long it is to the next refresh; f.mu is held. Workers that
// began together drift apart.
func (f *Fleet) pause() time.Duration {
	p, c := f.set.Refresh, &f.cycle
	if c.fails > 0 {
		if over := mono.Now().Sub(c.failing) - patience; over > 0 {
			p = max(p, min(over/4, longestPause))
		}
	}
	return p - time.Duration(f.draw()*float64(p)/10)
}

// answers notes that the store has answered a refresh.
func (f *Fleet) answers() {
	f.stats.refreshes.Add(1)
	f.mu.Lock()
	f.cycle.fails = 0
	f.mu.Unlock()
	if f.down.Swap(false) && f.set.Health != nil {
		f.aside(func() { f.set.Health(nil) })
	}
	f.keepForced(mono.Now())
}

// failed notes that a refresh has failed. Until one succeeds the store is asked
// nothing else.
func (f *Fleet) failed(err error) {
	f.stats.fail(err)
	f.mu.Lock()
	if c := &f.cycle; c.fails == 0 {
		c.failing = mono.Now()
	}
	f.cycle.fails++
	f.mu.Unlock()
	if !f.down.Swap(true) && f.set.Health != nil {
		f.aside(func() { f.set.Health(err) })
	}
}

// suspect notes that the store has failed at something else than a refresh, and
// has one find out.
func (f *Fleet) suspect(err error) {
	f.stats.fail(err)
	f.wake()
}

// aside does on a goroutine that is not a caller's what may run a user's
// function: if it panics the process goes on.
func (f *Fleet) aside(do func()) {
	defer func() {
		if v := recover(); v != nil {
			f.stats.fail(fmt.Errorf("breaker: a function called by a fleet panicked: %v", v))
		}
	}()
	do()
}
