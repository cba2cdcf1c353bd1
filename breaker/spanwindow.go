package breaker

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// spanWindow keeps the results of the last Span. The totals of the whole window
// are in episode.sum, so that one compare-and-swap counts a result and judges
// it. Here are the buckets already ended, which only a turn to the next bucket
// needs: the current bucket is what sum holds beyond them. They are guarded by
// Breaker.mu.
type spanWindow struct {
	end atomic.Int64 // the mono.Instant at which the current bucket ends

	oldest int       // index of the bucket to be dropped next
	small  [9]uint64 // the ended buckets, if that many do,
	large  *[]uint64 // or else here
}

// sum and buckets of a span window: three counts of 21 bits.
const (
	spanBits   = 21
	spanMask   = 1<<spanBits - 1
	spanTotal  = 1 << (2 * spanBits)
	spanFailed = 1 << spanBits
	spanSlow   = 1

	// From this total on all counts are halved, which leaves the rates as they
	// are.
	spanFull = 1 << (spanBits - 1)
)

func spanTally(v uint64) (total, failed, slow uint64) {
	return v >> (2 * spanBits) & spanMask, v >> spanBits & spanMask, v & spanMask
}

func newSpanWindow(r *rules, now mono.Instant) *spanWindow {
	w := &spanWindow{}
	w.end.Store(int64(now.Add(r.bucketTime)))
	if n := r.buckets - 1; n != len(w.small) {
		large := make([]uint64, n)
		w.large = &large
	}
	return w
}

func (w *spanWindow) ended() []uint64 {
	if w.large != nil {
		return *w.large
	}
	return w.small[:]
}

// over reports whether the current bucket has ended at now.
func (w *spanWindow) over(now mono.Instant) bool { return int64(now) >= w.end.Load() }

// turn moves on to the bucket that now lies in; Breaker.mu is held. Results
// counted meanwhile land in the old bucket if they reach sum before it is
// changed here, else in the new one.
func (w *spanWindow) turn(sum *atomic.Uint64, width time.Duration, now mono.Instant) {
	if !w.over(now) {
		return
	}
	end := mono.Instant(w.end.Load())
	steps := int64(now.Sub(end)/width) + 1
	ended := w.ended()
	if steps > int64(len(ended)) {
		clear(ended)
		sum.And(dead)
	} else {
		var all, old uint64
		for _, c := range ended {
			all += c
		}
		for i := range int(steps) {
			old += ended[(w.oldest+i)%len(ended)]
		}
		current := sum.Add(-old)&^dead + old - all
		for i := range int(steps) {
			ended[(w.oldest+i)%len(ended)] = 0
			if i == 0 {
				ended[w.oldest] = current
			}
		}
		w.oldest = (w.oldest + int(steps)) % len(ended)
	}
	w.end.Store(int64(end.Add(time.Duration(steps) * width)))
}

// expired returns what sum will lose when the window turns to now.
func (w *spanWindow) expired(sum uint64, width time.Duration, now mono.Instant) uint64 {
	if !w.over(now) {
		return 0
	}
	steps := int64(now.Sub(mono.Instant(w.end.Load()))/width) + 1
	ended := w.ended()
	if steps > int64(len(ended)) {
		return sum &^ dead
	}
	var old uint64
	for i := range int(steps) {
		old += ended[(w.oldest+i)%len(ended)]
	}
	return old
}

// halve halves every count; Breaker.mu is held.
func (w *spanWindow) halve(sum *atomic.Uint64) {
	// The lowest bit of a count must not become the highest of its neighbour.
	half := func(c uint64) uint64 { return c >> 1 &^ (spanTotal>>1 | spanFailed>>1) }
	ended := w.ended()
	var before, after uint64
	for i, c := range ended {
		before += c
		ended[i] = half(c)
		after += ended[i]
	}
	for {
		v := sum.Load()
		current := v&^dead - before
		if sum.CompareAndSwap(v, v&dead|(after+half(current))) {
			return
		}
	}
}
