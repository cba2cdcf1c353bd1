package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// result is the end of an attempt that is not neutral.
type result struct {
	failed, slow bool
	asked        time.Duration // Retry-After
}

// book counts a result in a closed or disabled episode, and opens the breaker
// if it is the one that does. It reports whether the episode was still there to
// count it.
func (b *Breaker) book(ep *episode, end result, now mono.Instant) bool {
	switch ep.rules.kind {
	case byTime:
		return b.bookSpan(ep, end, at(now))
	case byCalls:
		return b.bookCall(ep, end, now)
	}
	for {
		v := ep.sum.Load()
		v2 := end.add(v, 0)
		switch {
		case v&dead != 0:
			return false
		case ep.judge(v2) != 0:
			return b.bookLocked(ep, end, 0, now)
		case v2 == v || ep.sum.CompareAndSwap(v, v2):
			return true
		}
	}
}

// add returns sum with a result counted: in the row here, in the window by
// count.
func (end *result) add(sum, count uint64) uint64 {
	switch {
	case !end.failed:
		sum &^= rowMask
	case sum&rowMask != rowMask:
		sum += oneRow
	}
	return sum + count
}

// bookLocked is book for a result that opens, or did when last looked at, or is
// the first of its bucket.
func (b *Breaker) bookLocked(ep *episode, end result, count uint64, now mono.Instant) bool {
	b.mu.Lock()
	defer b.unlock()
	for b.now.Load() == ep {
		v := ep.sum.Load()
		v2 := v
		if w := ep.spans; w != nil {
			v2 = w.after(v, ep.rules, now)
			if l := &ep.rules.span; v2&spanMask+count >= l.full {
				ep.halve()
				continue
			}
		}
		v2 = end.add(v2, count)
		why := ep.judge(v2)
		if why == 0 || why == ReasonConsecutive {
			why = ep.judgeExact(end, now, why)
		}
		if why != 0 {
			v2 |= dead
		}
		if !ep.sum.CompareAndSwap(v, v2) {
			continue
		}
		if w := ep.spans; w != nil {
			w.turned(v, ep.rules, now)
			if exact := w.exact(); exact != nil && end.failed {
				exact.current++
			}
		}
		if why != 0 {
			b.trip(ep, why, end.asked, now)
		}
		return true
	}
	return false
}

// judgeExact returns why the number of failures opens if that is counted apart from
// sum, with end the last one at now, or else what was found before; Breaker.mu is
// held.
func (ep *episode) judgeExact(end result, now mono.Instant, found Reason) Reason {
	if ep.spans == nil || !end.failed || ep.state() != Closed {
		return found
	}
	if n, apart := ep.spans.failures(ep.rules, now); apart && ep.rules.failures > 0 && n+1 >= ep.rules.failures {
		return ReasonFailures
	}
	return found
}

// bookSpan is book for a time window.
func (b *Breaker) bookSpan(ep *episode, end result, now mono.Instant) bool {
	l := &ep.rules.span
	count := l.total
	if end.failed {
		count += l.failed
	}
	if end.slow {
		count += l.slow
	}
	for !ep.spans.over(now) {
		v := ep.sum.Load()
		v2 := end.add(v, count)
		switch {
		case v&dead != 0:
			return false
		case v2&spanMask >= l.full || v2&(l.bad|rowMask) != 0 && ep.judge(v2) != 0,
			end.failed && ep.flags.Load()&exactFlag != 0: // asked after sum was read; see halve
			return b.bookLocked(ep, end, count, now)
		case ep.sum.CompareAndSwap(v, v2):
			return true
		}
	}
	return b.bookLocked(ep, end, count, now)
}

// bookCall is book for a window of the last N results.
func (b *Breaker) bookCall(ep *episode, end result, now mono.Instant) bool {
	for r := ep.rules; !end.failed && !end.slow && ep.flags.Load()&judgeFlag == 0; {
		v := ep.sum.Load()
		switch {
		case v&dead != 0:
			return false
		case v&(rowMask|callBad) == 0 && callSeenOf(v) >= r.calls:
			b.restBooks(ep)
			return true // one success for another
		case v&callBad != 0 && !r.callAsUsual(v):
			return b.bookCallLocked(ep, end, now)
		case ep.sum.CompareAndSwap(v, end.add(v, callSeen)):
			return true
		}
	}
	return b.bookCallLocked(ep, end, now)
}

// restBooks lets successes pass without a look at the window, which is full of
// them.
func (b *Breaker) restBooks(ep *episode) {
	if ep.rules.timed {
		return
	}
	b.mu.Lock()
	if v := ep.sum.Load(); v&(dead|rowMask|callBad) == 0 {
		ep.flags.And(^uint32(booksFlag))
	}
	b.mu.Unlock()
}

// bookCallLocked is for a result that may open, or has a bit to set.
func (b *Breaker) bookCallLocked(ep *episode, end result, now mono.Instant) bool {
	count := uint64(callSeen)
	if end.failed {
		count += callFailed
	}
	if end.slow && ep.rules.cfg.SlowCall > 0 {
		count += callSlow
	}
	b.mu.Lock()
	defer b.unlock()
	if b.now.Load() != ep {
		return false
	}
	w, r := ep.last, ep.rules
	if ep.flags.Load()&booksFlag == 0 {
		ep.flags.Or(booksFlag)
	}
	for loss := uint64(0); ; {
		v := ep.sum.Load()
		loss += w.clear(r, callSeenOf(v)+1)
		v2 := end.add(v, count-loss)
		why := ep.judge(v2)
		if why != 0 {
			v2 |= dead
		}
		if ep.sum.CompareAndSwap(v, v2) {
			if ep.flags.Load()&judgeFlag != 0 {
				ep.flags.And(^uint32(judgeFlag))
			}
			w.put(r, end)
			w.rebase(r, &ep.sum)
			if why != 0 {
				b.trip(ep, why, end.asked, now)
			}
			return true
		}
	}
}

// trip opens b because of ep, the present and closed episode; b.mu is held.
func (b *Breaker) trip(ep *episode, why Reason, asked time.Duration, now mono.Instant) {
	next := b.open(ep, why, 1, ep.rules.spread(), at(now), asked)
	if next.rules.fleet != nil {
		b.shareOpening(next)
	}
}

// bookLate is book for a ticket of ep, which is over: the result counts if only
// the Config has changed since, or the breaker was dropped by its group.
func (b *Breaker) bookLate(ep *episode, end result, now mono.Instant) {
	for {
		present := b.present()
		switch {
		case present.state() == retired:
			b.bequeath(ep, end, now)
			return
		case present == ep || present.generation() != ep.generation() || b.book(present, end, now):
			return
		}
	}
}

// findStall opens b if its dependency has fallen silent, for a ticket of ep.
func (b *Breaker) findStall(ep *episode, now mono.Instant) {
	present := b.now.Load()
	if s := present.stall; s == nil || present.state() != Closed || present.generation() != ep.generation() {
		return
	} else if s.silent(present.rules, present.rules.slotAt(now)) {
		b.tripStalled(present, now)
	}
}

func (b *Breaker) tripStalled(ep *episode, now mono.Instant) {
	b.mu.Lock()
	defer b.unlock()
	if b.now.Load() == ep && ep.stall.silent(ep.rules, ep.rules.slotAt(now)) {
		ep.turn(now)
		b.trip(ep, ReasonStalled, 0, now)
	}
}
