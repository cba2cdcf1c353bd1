package breaker

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// windowKind says how the results of the closed state are kept.
type windowKind uint8

const (
	noWindow windowKind = iota
	byTime
	byCalls
)

// rules is a checked Config in the form that the hot paths read. It is
// immutable and shared by all breakers made from it.
type rules struct {
	cfg  Config // defaults filled
	kind windowKind

	// timed says that a ticket needs the time of its admission.
	timed bool

	// The rates in parts of a thousand million, rounded down: with p/100 given
	// as a float64, p failures of 100 reach it and p-1 do not, and with a/b
	// given, a failures of b do.
	failRate, slowRate uint64

	minCalls, failures, consecutive uint64

	calls      uint64        // byCalls: results in the window
	sweepMask  uint64        // byCalls: a power of two above calls, less one
	bucketTime time.Duration // byTime: length of a bucket
	buckets    int           // byTime: number of buckets
	span       spanLayout    // byTime

	stallShift uint  // a slot of the stall rule is 1<<stallShift ns long
	stallSlots int64 // an attempt is overdue from that many slots after its own on

	probesNeeded int // successes that close

	draw func() float64 // of the jitter, from [0, 1)

	// fleet is what the breakers share their state with, nil if with nobody;
	// home the fleet they were made for.
	fleet, home *Fleet

	// pause, which only tests set, is called between the step that decides a
	// transition and the one that others see, so that they get in between.
	pause func()
}

const rateUnit = 1_000_000_000

// compile makes rules of a valid Config.
func compile(c Config) *rules {
	c = c.WithDefaults()
	r := &rules{
		cfg:         c,
		timed:       c.SlowCall > 0 || c.Stall.After > 0,
		failRate:    uint64(c.FailureRate * rateUnit),
		slowRate:    uint64(c.SlowRate * rateUnit),
		minCalls:    uint64(c.MinCalls),
		failures:    uint64(c.Failures),
		consecutive: uint64(c.Consecutive),
		draw:        rand.Float64,
	}
	switch {
	case c.Window.Calls > 0:
		r.kind = byCalls
		r.calls = uint64(c.Window.Calls)
		r.sweepMask = 1<<bits.Len64(r.calls) - 1
	case c.Window.Span > 0:
		r.kind = byTime
		r.buckets = c.Window.Buckets
		r.span = newSpanLayout(c.SlowCall > 0)
		r.bucketTime = c.Window.Span / time.Duration(c.Window.Buckets)
	}
	if c.Stall.After > 0 {
		r.stallShift, r.stallSlots = stallGrid(c.Stall.After)
	}
	r.probesNeeded = c.ProbeSuccesses
	if c.ProbeRate > 0 {
		// The least k with k/Probes >= ProbeRate, in integers as above.
		rate, n := uint64(c.ProbeRate*rateUnit), uint64(c.Probes)
		r.probesNeeded = max(r.probesNeeded, int((rate*n+rateUnit-1)/rateUnit), 1)
	}
	return r
}

// verdict returns the reason to open that the window gives, or 0.
func (r *rules) verdict(total, failed, slow uint64) Reason {
	if total >= r.minCalls {
		if r.failRate > 0 && failed*rateUnit >= r.failRate*total {
			return ReasonFailureRate
		}
		if r.slowRate > 0 && slow*rateUnit >= r.slowRate*total {
			return ReasonSlowRate
		}
	}
	if r.failures > 0 && failed >= r.failures {
		return ReasonFailures
	}
	return 0
}

// cooldown is the length of the nth opening in a row:
//
//	min(Cooldown x CooldownFactor^(nth-1), MaxCooldown) x (1 + Jitter x spread)
//
// with spread within [-1, 1), NoJitter as 0, lengthened by what the dependency asked for, that
// at most to MaxCooldown.
func (r *rules) cooldown(nth int, spread float64, asked time.Duration) time.Duration {
	c := &r.cfg
	d, most := float64(c.Cooldown), float64(c.MaxCooldown)
	for range nth - 1 {
		if d *= c.CooldownFactor; d >= most || c.CooldownFactor == 1 {
			break
		}
	}
	d = min(d, most)
	if c.Jitter != NoJitter {
		d *= 1 + c.Jitter*spread
	}
	whole := time.Duration(math.MaxInt64 / 4) // 73 years, so that adding it to an instant cannot overflow
	if d < float64(whole) {
		whole = time.Duration(math.Round(d))
	}
	return max(whole, min(asked, c.MaxCooldown, math.MaxInt64/4))
}
