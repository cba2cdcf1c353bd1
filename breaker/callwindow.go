package breaker

import (
	"math/bits"
	"sync/atomic"
)

// callWindow keeps the last Calls results. episode.sum holds how many results
// there were, and how many of those in the window are failures and slow; the
// bits here say at which places these stand, so that they can be taken off when
// they leave. Guarded by Breaker.mu.
//
// A success writes no bit: it only moves sum on. The places it passed are
// cleared when the next failure or slow call arrives, or once in a window
// length. Until then sum may hold failures that have left the window, which no
// verdict sees: a success in a full window cannot open, and a failure clears
// first.
type callWindow struct {
	cleared uint64    // results whose places have been cleared of what stood there a window ago
	small   [2]uint64 // the bits, if that many do,
	large   *[]uint64 // or else here
}

// sum of a call window: results seen, failures, slow calls.
const (
	callSeen     = 1 << 32
	callFailed   = 1 << 16
	callSlow     = 1
	callMask     = 1<<16 - 1
	callSeenMask = 1<<31 - 1
)

// callSeenOf returns the number of results seen; it is reduced by multiples of
// the window length now and then, but never below it.
func callSeenOf(v uint64) uint64 { return v >> 32 & callSeenMask }

func callTally(v, calls uint64) (total, failed, slow uint64) {
	return min(callSeenOf(v), calls), v >> 16 & callMask, v & callMask
}

func newCallWindow(r *rules) *callWindow {
	w := &callWindow{}
	words := r.callWords()
	if r.cfg.SlowCall > 0 {
		words *= 2
	}
	if words > len(w.small) {
		large := make([]uint64, words)
		w.large = &large
	}
	return w
}

// callWords is the number of words for one bit for each result.
func (r *rules) callWords() int { return int(r.calls+63) / 64 }

// planes returns the bits of the failures and those of the slow calls, which
// are none if slow calls are not looked at.
func (w *callWindow) planes(r *rules) (failed, slow []uint64) {
	all := w.small[:]
	if w.large != nil {
		all = *w.large
	}
	n := r.callWords()
	if r.cfg.SlowCall > 0 {
		slow = all[n : 2*n]
	}
	return all[:n], slow
}

// clear clears the places of results cleared to seen, exclusive, and returns
// what sum has to lose for it.
func (w *callWindow) clear(r *rules, seen uint64) (loss uint64) {
	failed, slow := w.planes(r)
	if seen-w.cleared >= r.calls {
		loss = wipe(failed)*callFailed + wipe(slow)*callSlow
		w.cleared = seen
		return loss
	}
	for ; w.cleared < seen; w.cleared++ {
		at := w.cleared % r.calls
		loss += take(failed, at)*callFailed + take(slow, at)*callSlow
	}
	return loss
}

// loss returns what clear would return, and changes nothing.
func (w *callWindow) loss(r *rules, seen uint64) (loss uint64) {
	failed, slow := w.planes(r)
	for i := range min(seen-w.cleared, r.calls) {
		at := (w.cleared + i) % r.calls
		loss += bit(failed, at)*callFailed + bit(slow, at)*callSlow
	}
	return loss
}

// put marks the result at place seen.
func (w *callWindow) put(r *rules, seen uint64, failed, slow bool) {
	f, s := w.planes(r)
	at := seen % r.calls
	if failed {
		f[at/64] |= 1 << (at % 64)
	}
	if slow && s != nil {
		s[at/64] |= 1 << (at % 64)
	}
}

// rebase keeps the number of results seen small. Breaker.mu is held, and all
// places are clear up to the present or nearly so.
func (w *callWindow) rebase(r *rules, sum *atomic.Uint64) {
	seen := callSeenOf(sum.Load())
	if seen < 8*r.calls {
		return
	}
	back := min(seen, w.cleared)/r.calls*r.calls - r.calls
	w.cleared -= back
	sum.Add(-back * callSeen)
}

func wipe(plane []uint64) (n uint64) {
	for i, word := range plane {
		n += uint64(bits.OnesCount64(word))
		plane[i] = 0
	}
	return n
}

func bit(plane []uint64, at uint64) uint64 {
	if plane == nil {
		return 0
	}
	return plane[at/64] >> (at % 64) & 1
}

func take(plane []uint64, at uint64) uint64 {
	b := bit(plane, at)
	if b != 0 {
		plane[at/64] &^= 1 << (at % 64)
	}
	return b
}
