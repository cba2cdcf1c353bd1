package holdfast

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

// soonestOpen returns, if every upstream is closed off by its breakers, the one with
// the least cooldown left; -1 if one is not, or is being probed. One that was forced
// open is none of them, and a list of one upstream has no such rule.
func (c *Call) soonestOpen() int {
	w := c.walk
	if len(w.list) < 2 {
		return -1
	}
	best, least := -1, time.Duration(0)
	for i := range w.list {
		refusal := c.refusalOf(i)
		switch {
		case refusal == nil:
			return -1
		case refusal.Forced():
			continue
		case refusal.Cause() != breaker.CauseOpen:
			return -1
		}
		if left := refusal.RetryAfterAt(c.now); best < 0 || left < least {
			best, least = i, left
		}
	}
	return best
}

// refusalOf returns what the breakers of an upstream would answer now, nil for yes.
func (c *Call) refusalOf(i int) *breaker.OpenError {
	there := *c.walk
	there.at = i
	info := there.here(c.info)
	s := c.method.state(&info, c.now)
	if s.breaker == nil {
		return nil
	}
	return breaker.RefusalOfBothAt(s.breaker, s.outerBreaker, c.now)
}

// refusalOfAll returns nil if one of the upstreams would admit an attempt, or else
// the refusal that is over soonest.
func (c *Call) refusalOfAll() error {
	var soonest error
	for i := range c.walk.list {
		refusal := c.refusalOf(i)
		if refusal == nil {
			return nil
		}
		soonest = sooner(soonest, refusal, c.now)
	}
	return soonest
}

// force asks the breakers for a probe that is not due yet.
func (c *Call) force(a *Attempt) error {
	tries := &c.walk.try
	try := tries.begin(c.now)
	if try == 0 {
		return c.walk.refusal
	}
	admitted := false
	defer func() {
		if !admitted { // a hook may panic
			tries.end(try)
		}
	}()
	if err := a.ticket.ProbeAt(c.breaker, c.outerBreaker, c.now); err != nil {
		return err
	}
	admitted = true
	if lease := a.ticket.ProbeLimit(); lease > 0 {
		tries.lasts(try, a.ticket.BeganAt(c.now).Add(lease))
	}
	a.hop = &hop{tries: tries, try: try}
	return nil
}

// sooner returns the refusal that is over sooner; a may be nil. One that is not a
// breaker's may be over at any time, a forced one never.
func sooner(a, b error, now mono.Instant) error {
	if a == nil {
		return b
	}
	x, isOpen := errors.AsType[*breaker.OpenError](a)
	if !isOpen {
		return a
	}
	y, isOpen := errors.AsType[*breaker.OpenError](b)
	if !isOpen || x.Forced() {
		return b
	}
	if y.Forced() || x.RetryAfterAt(now) <= y.RetryAfterAt(now) {
		return a
	}
	return b
}

// hear keeps what an upstream has asked for: in the rounds to come it is passed over
// until then.
func (w *walk) hear(res call.Result, now mono.Instant) {
	wish := ask{res.RetryAfter > 0 || res.Exact, res.Exact, now.Add(min(res.RetryAfter, longest))}
	if w.asks == nil {
		if !wish.asked {
			return
		}
		w.asks = make([]ask, len(w.list))
	}
	w.asks[w.at] = wish
}

const longest time.Duration = 1 << 62 // that can be added to a moment

// askedUntil returns until when an upstream is to be left alone: a moment long past if
// it did not ask.
func (w *walk) askedUntil(i int) mono.Instant {
	if w.asks == nil || !w.asks[i].asked {
		return mono.First()
	}
	return w.asks[i].until
}

// asked returns the round's result as the retry policy is to see it: the next round
// may begin when the first of the upstreams that would admit an attempt may be asked
// again.
func (c *Call) asked(res call.Result) call.Result {
	w := c.walk
	if w.asks == nil {
		return res
	}
	var first *ask
	for i := range w.asks {
		if c.refusalOf(i) == nil && (first == nil || !w.asks[i].asked || first.asked && w.asks[i].until.Before(first.until)) {
			first = &w.asks[i]
		}
	}
	if first == nil {
		return res // there is nobody to ask
	}
	res.RetryAfter, res.Exact = 0, false
	if first.asked {
		res.RetryAfter, res.Exact = max(first.until.Sub(c.now), 0), first.exact
	}
	return res
}
