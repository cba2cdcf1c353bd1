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
// cleared when the next failure or slow call arrives, or once in about a window
// length. Until then sum may hold failures that have left the window, which no
// verdict sees: a success in a full window cannot open, and a failure clears
// first. A success in a full window of successes writes nothing at all; then
// booksFlag is off.
type callWindow struct {
	cleared uint32    // results whose places have been cleared of what stood there a window ago
	place   uint32    // of the next result to be cleared: cleared modulo Calls, without a division
	small   [2]uint64 // the bits, if that many do,
	large   *[]uint64 // or else here
}

// sum of a call window: results seen, failures, slow calls.
const (
	callSeen   = 1 << 32
	callFailed = 1 << 16
	callSlow   = 1
	callMask   = 1<<16 - 1
	callBad    = callSeen - 1 // failures and slow calls
)

// callSeenOf returns the number of results seen; it is reduced by multiples of
// the window length now and then, but never below it.
func callSeenOf(v uint64) uint64 { return v & (oneRow - 1) >> 32 }

func (r *rules) callTally(v uint64) (total, failed, slow uint64) {
	return min(callSeenOf(v), r.calls), v >> 16 & callMask, v & callMask
}

// callAsUsual reports whether a success only counts and ends a row: it is
// neither the one that the rates begin with nor the one to clean up, and the
// window is not full of successes.
func (r *rules) callAsUsual(v uint64) bool {
	seen := callSeenOf(v) + 1
	return v&callBad != 0 && seen != r.minCalls && seen&r.sweepMask != 0
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
	loss = w.loss(r, seen, true)
	w.place += uint32(seen) - w.cleared
	if w.place >= uint32(r.calls) {
		w.place %= uint32(r.calls)
	}
	w.cleared = uint32(seen)
	return loss
}

// loss returns what sum has to lose for the places of results cleared to seen;
// if take is set it clears them.
func (w *callWindow) loss(r *rules, seen uint64, take bool) (loss uint64) {
	failed, slow := w.planes(r)
	from, n := uint64(w.place), min(seen-uint64(w.cleared), r.calls)
	first := min(n, r.calls-from)
	loss = (count(failed, from, first, take) + count(failed, 0, n-first, take)) * callFailed
	if slow != nil {
		loss += (count(slow, from, first, take) + count(slow, 0, n-first, take)) * callSlow
	}
	return loss
}

// count returns the number of bits set in n places from from on; if take is set
// it clears them.
func count(plane []uint64, from, n uint64, take bool) (set uint64) {
	for n > 0 {
		word, at := &plane[from/64], from%64
		part := min(n, 64-at)
		mask := (uint64(1)<<part - 1) << at // all ones for 64 places
		set += uint64(bits.OnesCount64(*word & mask))
		if take {
			*word &^= mask
		}
		from += part
		n -= part
	}
	return set
}

// put marks the last result cleared.
func (w *callWindow) put(r *rules, end result) {
	f, s := w.planes(r)
	at := w.place
	if at == 0 {
		at = uint32(r.calls)
	}
	at--
	if end.failed {
		f[at/64] |= 1 << (at % 64)
	}
	if end.slow && s != nil {
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
	back := uint64(w.cleared)/r.calls*r.calls - r.calls
	w.cleared -= uint32(back)
	sum.Add(-back * callSeen)
}
