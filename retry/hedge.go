package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Hedge sends another attempt while the first is still unanswered, for a call
// that may be repeated whatever became of the first: ReadOnly or Idempotent. The
// first acceptable answer wins and the others are cancelled. It trades load for
// the slowest answers; the budget bounds that load, and MaxAttempts the attempts
// of one call. The zero Hedge sends none.
//
// An attempt that fails before any hedge was sent is repeated by the ordinary
// rule, and the repeat may be hedged again. Once one was sent nothing is repeated
// any more: if all fail, the call ends with the failure of the attempt that was
// hedged.
//
// The idea and the choice of a high percentile as the delay are those of J. Dean
// and L. A. Barroso, "The Tail at Scale", Communications of the ACM, 2013.
type Hedge struct {
	// Delay is how long an attempt is given before a hedge is sent. Beside a
	// Percentile it is the least delay, and 0 is 10 ms then. Without one, 0 sends
	// no hedge.
	Delay time.Duration

	// Percentile, in (0, 1), makes the delay the latency that this share of the
	// target's calls that may be hedged stayed below in the last minute: 0.95 hedges
	// the slowest twentieth. Until there are 50 of them the delay is the least one. An
	// attempt that a hedge overtook counts with the time it had, one that failed does
	// not count. Zero is no percentile. In an override, what counts is whether it has
	// one: the share is that of the method's policy, if that has one, and else the
	// delay is the least one.
	Percentile float64

	// Extra, at most 100, is how many hedges a call sends at most, each a delay
	// after the one before. Zero is 1.
	Extra int
}

// Sends reports whether h sends hedges at all.
func (h Hedge) Sends() bool { return h.Delay > 0 || h.Percentile > 0 }

// maxExtra is far beyond what makes sense, and near enough to be counted on.
const maxExtra = 100

// WithDefaults returns h with every zero field filled in, but for the percentile.
// A Hedge that sends none stays as it is.
func (h Hedge) WithDefaults() Hedge {
	if !h.Sends() {
		return h
	}
	if h.Delay == 0 {
		h.Delay = 10 * time.Millisecond
	}
	if h.Extra == 0 {
		h.Extra = 1
	}
	return h
}

func (h Hedge) check() check.Faults {
	var faults check.Faults
	if h.Delay < 0 {
		faults.Add("Delay", h.Delay, "must not be negative")
	}
	if h.Percentile != 0 && !(h.Percentile > 0 && h.Percentile < 1) {
		faults.Add("Percentile", h.Percentile, "must be in (0, 1), or 0 for none")
	}
	switch {
	case h.Extra < 0:
		faults.Add("Extra", h.Extra, "must be at least 1, or 0 for the default")
	case h.Extra > maxExtra:
		faults.Add("Extra", h.Extra, "must be at most %d", maxExtra)
	case h.Extra > 0 && h.Delay == 0 && h.Percentile == 0:
		faults.Add("Extra", h.Extra, "has no effect without Delay or Percentile")
	}
	return faults
}

// checkHedge holds the hedge against the number of attempts that it shares.
func (p Policy) checkHedge() check.Faults {
	faults := p.Hedge.check()
	f := p.WithDefaults()
	if faults == nil && f.MaxAttempts > 0 && f.Hedge.Extra >= f.MaxAttempts {
		faults.Add("Extra", f.Hedge.Extra, "needs MaxAttempts of at least %d, which is %d: they count hedges too",
			f.Hedge.Extra+1, f.MaxAttempts)
	}
	return faults
}
