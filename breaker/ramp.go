package breaker

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// ramp admits a share of the calls that grows along a line from RampFrom to 1.
// Every call adds the share of its moment to the credit; the one that carries
// it over a whole number is admitted. So the share is followed to within one
// call, without chance.
type ramp struct {
	since  mono.Instant
	credit atomic.Uint64 // in units of 2^-32 calls
}

const oneCall = 1 << 32

// startRamp makes a new closed episode begin with a ramp.
func (ep *episode) startRamp(b *Breaker, now mono.Instant) {
	ep.out = &outage{err: OpenError{b: b, ep: ep, state: Closed, cause: CauseRamp}}
	ep.out.ramp.since = now
	ep.out.ramp.credit.Store(oneCall - 1) // the first call passes
	ep.flags.Or(rampFlag)
}

// rampShare returns the share at now in units of 2^-32; false after the ramp.
func (ep *episode) rampShare(now mono.Instant) (uint64, bool) {
	c := &ep.rules.cfg
	t := max(now.Sub(ep.out.ramp.since), 0)
	if t >= c.RampUp {
		return oneCall, false
	}
	return uint64(oneCall * (c.RampFrom + (1-c.RampFrom)*float64(t)/float64(c.RampUp))), true
}

// rampNow is rampShare for whoever only looks: it is false without a ramp, and
// after one, of which only a call takes the flag off.
func (ep *episode) rampNow(now mono.Instant) (uint64, bool) {
	if ep.flags.Load()&rampFlag == 0 {
		return oneCall, false
	}
	return ep.rampShare(now)
}

func (ep *episode) rampAdmits(now mono.Instant) bool {
	share, on := ep.rampShare(now)
	if !on {
		ep.flags.And(^uint32(rampFlag))
		return true
	}
	credit := ep.out.ramp.credit.Add(share)
	return credit/oneCall != (credit-share)/oneCall
}

// rampWould is rampAdmits without its effects.
func (ep *episode) rampWould(now mono.Instant) bool {
	share, on := ep.rampShare(now)
	credit := ep.out.ramp.credit.Load()
	return !on || (credit+share)/oneCall != credit/oneCall
}
