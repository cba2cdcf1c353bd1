package breaker

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// spanWindow keeps the results of the last Span. The totals of the whole window
// are in episode.sum, so that one compare-and-swap counts a result and judges
// it. Here are the buckets already ended, which only a turn to the next bucket
// needs: the current bucket is what sum holds beyond them. They are guarded by
// Breaker.mu.
type spanWindow struct {
	end atomic.Int64 // the packed mono.Instant at which the current bucket ends

	oldest int       // index of the bucket to be dropped next
	small  [9]uint64 // the ended buckets, if that many do,
	more   *spanMore // or else here
}

// spanMore is what few windows need.
type spanMore struct {
	large []uint64 // the ended buckets, nil if they are in small

	// Once counts have been halved, the failures as they were: the rule of that
	// name is about their number. They are then booked with the lock held.
	exact *exactFailures
}

// exactFailures are the failures in a window, by bucket as there.
type exactFailures struct {
	ended   []uint64
	current uint64
}

// spanLayout says where sum and the buckets hold the counts: the results above
// the failures above the slow calls. When half the room for results is used up,
// which is for 67 million, or for 131,072 with a look at slow calls, all counts
// are halved, which leaves the rates as they are; see spanWindow.exact for the
// failures.
type spanLayout struct {
	total, failed, slow uint64 // one of each
	bad                 uint64 // mask of failures and slow calls
	full                uint64 // counts from this on are halved
}

const (
	spanBits     = 26
	spanSlowBits = 17
	spanMask     = oneRow - 1 // all counts
)

func newSpanLayout(slow bool) spanLayout {
	l := spanLayout{total: 1 << spanBits, failed: 1, full: 1 << (2*spanBits - 1)}
	if slow {
		l = spanLayout{total: 1 << (2 * spanSlowBits), failed: 1 << spanSlowBits, slow: 1, full: 1 << (3*spanSlowBits - 1)}
	}
	l.bad = l.total - 1
	return l
}

func (r *rules) spanTally(v uint64) (total, failed, slow uint64) {
	v &= spanMask
	if r.span.slow == 0 {
		return v >> spanBits, v & (1<<spanBits - 1), 0
	}
	const mask = 1<<spanSlowBits - 1
	return v >> (2 * spanSlowBits), v >> spanSlowBits & mask, v & mask
}

// half halves the counts in v.
func (l *spanLayout) half(v uint64) uint64 {
	// The lowest bit of a count must not become the highest of its neighbour.
	return v >> 1 &^ (l.total>>1 | l.failed>>1)
}

// spanAsUsual reports whether a success only counts: there is nothing bad in the
// window, so that it cannot open, no row to end, and room.
func (r *rules) spanAsUsual(v uint64) bool {
	l := &r.span
	return v&(l.bad|rowMask) == 0 && v+l.total < l.full
}

func newSpanWindow(r *rules, now mono.Instant) *spanWindow {
	w := &spanWindow{}
	w.end.Store(now.Add(r.bucketTime).Pack())
	if n := r.buckets - 1; n != len(w.small) {
		w.more = &spanMore{large: make([]uint64, n)}
	}
	return w
}

func (w *spanWindow) ended() []uint64 {
	if w.more != nil && w.more.large != nil {
		return w.more.large
	}
	return w.small[:]
}

func (w *spanWindow) exact() *exactFailures {
	if w.more == nil {
		return nil
	}
	return w.more.exact
}

// over reports whether the current bucket has ended at now.
func (w *spanWindow) over(now mono.Instant) bool { return now.Pack() >= w.end.Load() }

// expired returns how many buckets the window has to move to reach now, and the
// counts that it then loses, if it moves by less than its length.
func (w *spanWindow) expired(r *rules, now mono.Instant) (steps int64, old uint64) {
	if !w.over(now) {
		return 0, 0
	}
	ended := w.ended()
	steps = int64(now.Sub(mono.Unpack(w.end.Load()))/r.bucketTime) + 1
	for i := range int(min(steps, int64(len(ended)))) {
		old += ended[(w.oldest+i)%len(ended)]
	}
	return steps, old
}

// after returns what sum is once the window has turned to now.
func (w *spanWindow) after(sum uint64, r *rules, now mono.Instant) uint64 {
	steps, old := w.expired(r, now)
	if steps > int64(len(w.ended())) {
		return sum & (dead | rowMask)
	}
	return sum - old
}

// turned moves the window to now, after sum was changed from before to what
// after tells; Breaker.mu is held. Results that reach sum after that belong to
// the new bucket, those before to the old one.
func (w *spanWindow) turned(before uint64, r *rules, now mono.Instant) {
	steps, _ := w.expired(r, now)
	if steps == 0 {
		return
	}
	ended := w.ended()
	if steps > int64(len(ended)) {
		clear(ended)
		if w.more != nil {
			w.more.exact = nil
		}
	} else {
		current := before & spanMask
		for _, c := range ended {
			current -= c
		}
		exact := w.exact()
		for i := range int(steps) {
			at := (w.oldest + i) % len(ended)
			ended[at] = 0
			if exact != nil {
				exact.ended[at] = 0
			}
		}
		ended[w.oldest] = current
		if exact != nil {
			exact.ended[w.oldest], exact.current = exact.current, 0
		}
		w.oldest = (w.oldest + int(steps)) % len(ended)
	}
	w.end.Add(steps * int64(r.bucketTime))
}

// halve halves every count; Breaker.mu is held. If the number of failures matters
// it is kept apart from then on.
func (ep *episode) halve() {
	w, r := ep.spans, ep.rules
	l, ended := &r.span, w.ended()
	var apart *exactFailures
	if r.failures > 0 && w.exact() == nil {
		apart = &exactFailures{ended: make([]uint64, len(ended))}
		for i, c := range ended {
			_, apart.ended[i], _ = r.spanTally(c)
		}
		if w.more == nil {
			w.more = &spanMore{}
		}
		w.more.exact = apart
		ep.flags.Or(exactFlag) // before sum changes: who sees that sees this too
	}
	var before, after uint64
	for i, c := range ended {
		before += c
		ended[i] = l.half(c)
		after += ended[i]
	}
	for {
		v := ep.sum.Load()
		current := v&spanMask - before
		if apart != nil { // with failures that have ended meanwhile
			_, apart.current, _ = r.spanTally(current)
		}
		if ep.sum.CompareAndSwap(v, v&^spanMask|(after+l.half(current))) {
			return
		}
	}
}

// failures returns how many failures there are in the window at now, and whether
// that is kept apart from sum; Breaker.mu is held.
func (w *spanWindow) failures(r *rules, now mono.Instant) (n uint64, apart bool) {
	exact := w.exact()
	if exact == nil {
		return 0, false
	}
	steps, _ := w.expired(r, now)
	size := int64(len(exact.ended))
	for i := steps; i < size; i++ {
		n += exact.ended[(int64(w.oldest)+i)%size]
	}
	if steps <= size {
		n += exact.current
	}
	return n, true
}
