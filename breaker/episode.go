package breaker

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// episode is one generation of a breaker: what lies between two transitions. A
// ticket keeps the episode that admitted it, so that a result of an earlier one
// cannot reach a later one.
//
// In the closed and disabled states sum holds the results. One compare-and-swap
// counts a result, judges by it, and if it opens marks the episode dead; and
// admission looks for that mark. So no call is admitted, and no result counted,
// after the result that opened.
type episode struct {
	rules *rules

	// sum: bit 63 dead; then the failures in a row; the rest is the window's.
	sum atomic.Uint64

	flags atomic.Uint32
	id    uint32 // generation << 3 | state

	spans *spanWindow
	last  *callWindow
	stall *stallRing

	// out is what an episode needs that refuses or probes; in the closed state
	// it is nil but for a ramp.
	out *outage
}

// The parts of sum that all episodes have.
const (
	dead    = 1 << 63 // the episode is over, or is none that admits
	oneRow  = 1 << rowShift
	rowMask = maxRow << rowShift

	rowShift = 52
	maxRow   = 1<<(63-rowShift) - 1 // a longer row is not counted
)

// The flags.
const (
	rampFlag   = 1 << iota // only a share is admitted
	timedFlag              // a ticket needs the time of its admission
	booksFlag              // a success changes something even if there is no row
	judgeFlag              // a success may open: the Config has changed
	exactFlag              // failures are counted apart from sum as well
	sharedFlag             // an admission tells the fleet that the breaker is in use
)

// newClosed sets ep up as a closed or disabled episode that begins at now.
func newClosed(ep *episode, r *rules, state State, now mono.Instant) {
	ep.rules, ep.id = r, uint32(state)
	switch r.kind {
	case byTime:
		ep.spans = newSpanWindow(r, now)
	case byCalls:
		ep.last = newCallWindow(r)
	}
	if r.cfg.Stall.After > 0 {
		ep.stall = newStallRing()
	}
	var flags uint32
	if r.timed {
		flags |= timedFlag
	}
	if r.timed || r.kind != noWindow {
		flags |= booksFlag
	}
	if r.fleet != nil {
		flags |= sharedFlag
	}
	ep.flags.Store(flags)
}

func (ep *episode) state() State { return State(ep.id & 7) }

func (ep *episode) generation() uint32 { return ep.id >> 3 }

// follow makes ep the successor of old.
func (ep *episode) follow(old *episode, steps uint32) {
	ep.id = (old.generation()+steps)<<3 | ep.id&7
}

// over reports whether the episode has ended or is none that admits.
func (ep *episode) over() bool { return ep.sum.Load()&dead != 0 }

// plain reports whether the episode admits a call without a look at anything else.
func (ep *episode) plain() bool {
	return ep.stall == nil && ep.flags.Load()&(rampFlag|sharedFlag) == 0 && !ep.over()
}

// tally unpacks the window: results, failures, slow calls.
func (ep *episode) tally(sum uint64) (total, failed, slow uint64) {
	switch r := ep.rules; r.kind {
	case byTime:
		return r.spanTally(sum)
	case byCalls:
		return r.callTally(sum)
	}
	return 0, 0, 0
}

// judge returns why sum opens the breaker, or 0.
func (ep *episode) judge(sum uint64) Reason {
	if ep.state() != Closed {
		return 0
	}
	r := ep.rules
	if r.kind != noWindow {
		if why := r.verdict(ep.tally(sum)); why != 0 {
			return why
		}
	}
	if r.consecutive > 0 && sum&rowMask>>rowShift >= r.consecutive {
		return ReasonConsecutive
	}
	return 0
}

// turn brings a time window up to now; b.mu is held.
func (ep *episode) turn(now mono.Instant) {
	for ep.spans != nil {
		v := ep.sum.Load()
		if ep.sum.CompareAndSwap(v, ep.spans.after(v, ep.rules, now)) {
			ep.spans.turned(v, ep.rules, now)
			return
		}
	}
}
