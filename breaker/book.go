package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// book counts a result in a closed or disabled episode, and opens the breaker
// if it is the one that does.
//
// The order of the two words matters: a success ends the row before it enters
// the window, a failure enters the window before it lengthens the row. So two
// results that meet are seen in one order by both, or their order makes no
// difference.
func (b *Breaker) book(ep *episode, failed, slow bool, asked time.Duration, now mono.Instant) {
	if !failed && ep.row.Load()&rowMask != 0 && !ep.endRow() {
		return
	}
	alive := true
	switch ep.rules.kind {
	case byTime:
		alive = b.bookSpan(ep, failed, slow, asked, now)
	case byCalls:
		alive = b.bookCall(ep, failed, slow, asked, now)
	}
	if failed && alive {
		b.bookRow(ep, asked, now)
	}
}

// judge is the verdict of the window with the totals in sum.
func (ep *episode) judge(sum uint64) Reason {
	if ep.state != Closed {
		return 0
	}
	return ep.rules.verdict(ep.tally(sum))
}

// rowOpens reports whether a row of n failures opens.
func (ep *episode) rowOpens(n uint64) bool {
	c := ep.rules.consecutive
	return c > 0 && n >= c && ep.state == Closed
}

func (b *Breaker) bookRow(ep *episode, asked time.Duration, now mono.Instant) {
	for {
		v := ep.row.Load()
		if v&dead != 0 {
			return
		}
		if ep.rowOpens(v&rowMask + 1) {
			break
		}
		if ep.row.CompareAndSwap(v, v+1) {
			return
		}
	}
	b.mu.Lock()
	for b.now.Load() == ep {
		v := ep.row.Load()
		if !ep.rowOpens(v&rowMask + 1) {
			if ep.row.CompareAndSwap(v, v+1) {
				break
			}
		} else if ep.row.CompareAndSwap(v, (v+1)|dead) {
			b.trip(ep, ReasonConsecutive, asked, now)
		}
	}
	b.unlock()
}

// bookSpan reports whether the episode still lives.
func (b *Breaker) bookSpan(ep *episode, failed, slow bool, asked time.Duration, now mono.Instant) bool {
	add := uint64(spanTotal)
	if failed {
		add += spanFailed
	}
	if slow {
		add += spanSlow
	}
	for !ep.spans.over(now) {
		v := ep.sum.Load()
		if v&dead != 0 {
			return false
		}
		v2 := v + add
		if v2 >= spanFull*spanTotal || v2&(spanTotal-1) != 0 && ep.judge(v2) != 0 {
			break
		}
		if ep.sum.CompareAndSwap(v, v2) {
			return true
		}
	}
	b.mu.Lock()
	defer b.unlock()
	for b.now.Load() == ep {
		ep.spans.turn(&ep.sum, ep.rules.bucketTime, now)
		v := ep.sum.Load()
		v2 := v + add
		if v2 >= spanFull*spanTotal {
			ep.spans.halve(&ep.sum)
			continue
		}
		why := ep.judge(v2)
		if why != 0 {
			v2 |= dead
		}
		if ep.sum.CompareAndSwap(v, v2) {
			if why != 0 {
				b.tripByWindow(ep, why, failed, asked, now)
			}
			return why == 0
		}
	}
	return false
}

// bookCall reports whether the episode still lives.
func (b *Breaker) bookCall(ep *episode, failed, slow bool, asked time.Duration, now mono.Instant) bool {
	r := ep.rules
	for !failed && !slow {
		v := ep.sum.Load()
		if v&dead != 0 {
			return false
		}
		seen, bad := callSeenOf(v)+1, v&(callSeen-1) != 0
		if !bad && seen > r.calls {
			return true // one success for another
		}
		if bad && (seen == r.minCalls || seen&r.sweepMask == 0) {
			break
		}
		if ep.sum.CompareAndSwap(v, v+callSeen) {
			return true
		}
	}
	add := uint64(callSeen)
	if failed {
		add += callFailed
	}
	if slow {
		add += callSlow
	}
	b.mu.Lock()
	defer b.unlock()
	var loss uint64
	for b.now.Load() == ep {
		v := ep.sum.Load()
		seen := callSeenOf(v)
		loss += ep.last.clear(r, seen+1)
		v2 := v + add - loss
		why := ep.judge(v2)
		if why != 0 {
			v2 |= dead
		}
		if !ep.sum.CompareAndSwap(v, v2) {
			continue
		}
		ep.last.put(r, seen, failed, slow)
		if why != 0 {
			b.tripByWindow(ep, why, failed, asked, now)
			return false
		}
		ep.last.rebase(r, &ep.sum)
		return true
	}
	return false
}

// trip opens b because of a result in ep, the present and closed episode;
// b.mu is held.
func (b *Breaker) trip(ep *episode, why Reason, asked time.Duration, now mono.Instant) {
	b.open(ep, why, 1, spread(), at(now), asked)
}

// tripByWindow is trip for a result that the row of failures has not seen.
func (b *Breaker) tripByWindow(ep *episode, why Reason, failed bool, asked time.Duration, now mono.Instant) {
	if failed {
		ep.row.Add(1)
	}
	b.trip(ep, why, asked, now)
}

// findStall opens b if its dependency has fallen silent.
func (b *Breaker) findStall(ep *episode, now mono.Instant) {
	if ep.stall != nil && ep.state == Closed && ep.stall.silent(ep.rules, ep.rules.slotAt(now)) {
		b.tripStalled(ep, now)
	}
}

func (b *Breaker) tripStalled(ep *episode, now mono.Instant) {
	b.mu.Lock()
	if b.now.Load() == ep && ep.stall.silent(ep.rules, ep.rules.slotAt(now)) {
		ep.turn(now)
		b.trip(ep, ReasonStalled, 0, now)
	}
	b.unlock()
}
