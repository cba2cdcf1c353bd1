package breaker

import (
	"math/bits"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// Inspection is all that a breaker shows of itself at one moment.
type Inspection struct {
	Name  string
	State State // what the next call would find

	// For is how long the breaker has been in its state. Known says whether it is
	// known: of a closed or disabled breaker, whose cost is counted in bytes, it is
	// not, but in a ramp.
	For   time.Duration
	Known bool

	Reason Reason // why it entered a state that is not closed, or a ramp
	Note   string // given to ForceOpen

	// Open: Cooldown is its length, Left what is left of it. Openings counts the
	// openings in a row, half-open ones included.
	Cooldown, Left time.Duration
	Openings       int

	// Admits is the share of the calls that are admitted, less than 1 in a ramp.
	// Outside closed and disabled it is 0.
	Admits float64

	Counts Counts

	// Window is what the window holds, the oldest part first; in other states than
	// closed and disabled it is empty. A part lasts for PartTime, the last one up
	// to now; PartTime is 0 if the window is of calls, where the parts are of
	// equally many results and the last may be short. See Counts for when numbers are
	// halved.
	Window   []Part
	PartTime time.Duration

	Config Config // in force, with its defaults filled in
}

// Part is a part of a window: how many results it holds, and how many of them were
// failures and slow.
type Part struct{ Results, Failures, Slow int }

// Totals returns the counters that never fall, as [Counts] has them too, without a lock:
// for metrics, which ask often. Of a breaker that its Group has dropped they are zero,
// whereas Counts tells those of the breaker that has its key now: the group has them (see
// [Group.Evicted]).
func (b *Breaker) Totals() Totals {
	m := b.more.Load()
	if m == nil || b.now.Load().state() == retired {
		return Totals{}
	}
	return m.totals()
}

// Inspect returns what there is to see of the breaker as of now. It changes
// nothing.
func (b *Breaker) Inspect() Inspection { return b.inspect(mono.Now()) }

func (b *Breaker) inspect(now mono.Instant) Inspection {
	for {
		if h := b.heir(now); h != nil {
			return h.inspect(now)
		}
		seen := b.look(now)
		i, same := b.inspectAs(seen, now)
		if same {
			return i
		}
	}
}

// inspectAs fills in an inspection of what was seen. It returns false if the
// breaker has moved on.
func (b *Breaker) inspectAs(seen sight, now mono.Instant) (i Inspection, same bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ep := b.now.Load()
	if ep.state() == retired || seen.ep != nil && seen.ep.generation() != ep.generation() {
		return i, false
	}
	r := ep.rules
	i = Inspection{Name: b.key, State: seen.state, Config: r.cfg}
	i.Config.Hooks = Hooks{}
	sum := ep.sum.Load()
	if ep.spans != nil {
		sum = ep.spans.after(sum, r, now)
	}
	i.Counts = b.counts(ep, sum)
	switch ep.state() {
	case Closed, Disabled:
		i.Admits = 1
		i.Window, i.PartTime = ep.parts(now)
		if share, on := ep.rampNow(now); on {
			i.Admits = float64(share) / oneCall
			i.For, i.Known, i.Reason = now.Sub(ep.out.ramp.since), true, ReasonRecovered
		}
	case Open, HalfOpen, ForcedOpen:
		o := ep.out
		i.Reason, i.Note, i.Openings = o.err.why, o.err.note, o.nth
		i.Cooldown, i.For, i.Known = o.lasts, now.Sub(o.since), true
		switch {
		case seen.state == Open && ep.state() == Open:
			i.Left = max(o.until.Sub(now), 0)
		case seen.state == Open: // a lease has run out, which the next call finds
			i.Left, i.Reason, i.Known = max(seen.until.Sub(now), 0), seen.why, false
		case seen.state == HalfOpen && ep.state() == Open:
			i.For, i.Reason = now.Sub(o.until), ReasonCooldownOver
		}
	}
	i.For = max(i.For, 0)
	return i, true
}

// parts returns what the window holds at now; Breaker.mu is held.
func (ep *episode) parts(now mono.Instant) ([]Part, time.Duration) {
	switch {
	case ep.spans != nil:
		return ep.spans.parts(ep.sum.Load(), ep.rules, now), ep.rules.bucketTime
	case ep.last != nil:
		return ep.last.parts(ep.rules, callSeenOf(ep.sum.Load())), 0
	}
	return nil, 0
}

func (w *spanWindow) parts(sum uint64, r *rules, now mono.Instant) []Part {
	ended := w.ended()
	counts := make([]uint64, 0, len(ended)+1)
	current := sum & spanMask
	for i := range ended {
		c := ended[(w.oldest+i)%len(ended)]
		counts = append(counts, c)
		current -= c
	}
	counts = append(counts, current)
	steps, _ := w.expired(r, now)
	parts := make([]Part, len(counts))
	for i := range counts {
		if from := int64(i) + steps; from < int64(len(counts)) {
			total, failed, slow := r.spanTally(counts[from])
			parts[i] = Part{int(total), int(failed), int(slow)}
		}
	}
	return parts
}

// maxParts is how many parts a window of calls is shown in.
const maxParts = 20

func (w *callWindow) parts(r *rules, seen uint64) []Part {
	// The bits stand at the number of a result modulo the window's length. Those
	// from cleared on, which were not cleared yet, are of results that have left.
	full := min(seen, r.calls)
	size := (r.calls + maxParts - 1) / maxParts
	failed, slow := w.planes(r)
	parts := make([]Part, 0, maxParts)
	place := (uint64(w.place) + seen - uint64(w.cleared)) % r.calls // of the next result
	stale := min(seen-uint64(w.cleared), r.calls)
	for n := range full {
		age := full - n // 1 is the last result
		at := (place + r.calls - age%r.calls) % r.calls
		if n%size == 0 {
			parts = append(parts, Part{})
		}
		p := &parts[len(parts)-1]
		p.Results++
		if age <= stale {
			continue // a success since
		}
		p.Failures += bit(failed, at)
		p.Slow += bit(slow, at)
	}
	return parts
}

func bit(plane []uint64, at uint64) int {
	if plane == nil {
		return 0
	}
	return bits.OnesCount64(plane[at/64] >> (at % 64) & 1)
}
