package breaker

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// episode is one generation of a breaker: what lies between two transitions. A
// ticket keeps the episode that admitted it, so that a result of an earlier one
// cannot reach a later one.
//
// In the closed and disabled states row and sum hold the results. Every step
// that may open publishes its result and the death of the episode in one
// compare-and-swap, and admission looks for that mark: so no call is admitted,
// and no result counted, after the result that opened.
type episode struct {
	rules *rules

	// row: bit 63 dead, bit 62 ramp, low 32 bits the failures in a row.
	row atomic.Uint64

	// sum: bit 63 dead, bit 62 never set, the rest the totals of the window (see
	// tally).
	sum atomic.Uint64

	gen   uint32
	state State

	// timed is rules.timed, here so that Allow touches one cache line.
	timed bool

	spans *spanWindow
	last  *callWindow
	stall *stallRing

	// out is what an episode needs that refuses or probes; in the closed state
	// it is nil but for a ramp.
	out *outage
}

const (
	dead    = 1 << 63
	ramping = 1 << 62
	rowMask = 1<<32 - 1
)

// newClosed sets ep up as a closed or disabled episode that begins at now.
func newClosed(ep *episode, r *rules, state State, now mono.Instant) {
	ep.rules, ep.state, ep.timed = r, state, r.timed
	switch r.kind {
	case byTime:
		ep.spans = newSpanWindow(r, now)
	case byCalls:
		ep.last = newCallWindow(r)
	}
	if r.cfg.Stall.After > 0 {
		ep.stall = newStallRing()
	}
}

// admits reports whether calls pass without a further look. It is false in all
// states but closed and disabled, during a ramp, and once the episode is over.
func (ep *episode) admits() bool {
	return (ep.row.Load()|ep.sum.Load())&(dead|ramping) == 0
}

// kill marks the episode as over; b.mu is held.
func (ep *episode) kill() {
	ep.row.Or(dead)
	ep.sum.Or(dead)
}

// tally unpacks the window: results, failures, slow calls.
func (ep *episode) tally(sum uint64) (total, failed, slow uint64) {
	switch ep.rules.kind {
	case byTime:
		return spanTally(sum)
	case byCalls:
		return callTally(sum, ep.rules.calls)
	}
	return 0, 0, 0
}

// endRow ends a row of failures. It reports whether the episode still lives.
func (ep *episode) endRow() bool {
	for {
		v := ep.row.Load()
		switch {
		case v&dead != 0:
			return false
		case v&rowMask == 0 || ep.row.CompareAndSwap(v, v&^rowMask):
			return true
		}
	}
}

// turn brings a time window up to now; b.mu is held.
func (ep *episode) turn(now mono.Instant) {
	if ep.spans != nil {
		ep.spans.turn(&ep.sum, ep.rules.bucketTime, now)
	}
}
