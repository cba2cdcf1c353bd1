package holdfast

import (
	"iter"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/keyed"
	"github.com/holdfast-go/holdfast/internal/stripe"
)

// maxTallies is how many names a kit counts apart.
const maxTallies = 1000

// Tally counts what the calls of one method come to. Its counters never fall. A
// call is counted when it returns, an attempt when it ends.
type Tally struct {
	name string

	calls, attempts       [classes]stripe.Counter
	first, repeats        [causes]stripe.Counter // refusals
	retries, hedges, wons stripe.Counter
	failovers             stripe.Counter
	fallbacks             stripe.Counter

	// Where the call is one attempt that ends well, and its end is known at once,
	// one counter stands for both: who counts twice pays twice.
	plain stripe.Stripes
}

const classes = int(call.Permanent) + 1

// slot returns the place of a class; an invalid one counts as ServerFault.
func slot(c call.Class) call.Class {
	if !c.Valid() {
		return call.ServerFault
	}
	return c
}

// Calls returns how many calls have returned with that class: that of their last
// attempt, or Refused. It is 0 for a class that is none.
func (t *Tally) Calls(c call.Class) uint64 { return t.ended(&t.calls, c) }

// Attempts returns how many attempts have ended with that class.
func (t *Tally) Attempts(c call.Class) uint64 { return t.ended(&t.attempts, c) }

func (t *Tally) ended(by *[classes]stripe.Counter, c call.Class) uint64 {
	if !c.Valid() {
		return 0
	}
	n := by[c].Load()
	if c == call.OK {
		n += t.plain.Load()
	}
	return n
}

// Refusals returns how many calls were turned away for that cause, 0 for a cause that
// is none.
func (t *Tally) Refusals(c Cause) uint64 { return t.refused(&t.first, c) }

// Denied returns how many repeats were not made for that cause, although the
// policy would have had one.
func (t *Tally) Denied(c Cause) uint64 { return t.refused(&t.repeats, c) }

func (t *Tally) refused(by *[causes]stripe.Counter, c Cause) uint64 {
	if int(c) >= causes {
		return 0
	}
	return by[c].Load()
}

// Retries returns how many repeats were sent, without hedges.
func (t *Tally) Retries() uint64 { return t.retries.Load() }

// Failovers returns how many attempts were made at another upstream than the one that
// the call turned to before.
func (t *Tally) Failovers() uint64 { return t.failovers.Load() }

// Hedges returns how many hedges were sent.
func (t *Tally) Hedges() uint64 { return t.hedges.Load() }

// HedgesWon returns how many of them had the answer.
func (t *Tally) HedgesWon() uint64 { return t.wons.Load() }

// Fallbacks returns how many calls got a fallback's answer.
func (t *Tally) Fallbacks() uint64 { return t.fallbacks.Load() }

// tallies are those of a kit, by the names of the methods.
type tallies = keyed.Registry[*Tally]

// counting is whether the calls of a kit are counted.
type counting struct {
	all  atomic.Pointer[tallies]     // nil if nobody counts
	when atomic.Pointer[func() bool] // says whether somebody does by now; nil if nobody waits
}

// Count makes the kit count its calls from now on, for [Kit.Tallies]. Before it is
// called nothing is counted, and nothing is paid for it; then each call pays for an
// atomic addition or two. To call it again does nothing.
func (k *Kit) Count() {
	k.counting.all.CompareAndSwap(nil, keyed.New(keyed.Options[*Tally]{
		Max:  maxTallies,
		New:  func(name string) *Tally { return &Tally{name: name} },
		Idle: func(*Tally) bool { return false }, // sums are not to fall
	}))
}

// CountWhen is [Kit.Count] from when wanted first returns true. It is asked now, and
// then by calls, about once a second: it must not wait for anything.
func (k *Kit) CountWhen(wanted func() bool) {
	if wanted() {
		k.Count()
		return
	}
	for {
		before := k.counting.when.Load()
		count := func() bool {
			if before != nil && (*before)() || wanted() {
				k.Count()
				return true
			}
			return false
		}
		if k.counting.when.CompareAndSwap(before, &count) {
			return
		}
	}
}

// ask begins to count if somebody has come who wants it.
func (c *counting) ask() {
	if when := c.when.Load(); when != nil && (*when)() {
		c.when.CompareAndSwap(when, nil)
	}
}

// Tallies ranges over what the calls of the kit have come to since [Kit.Count], by
// the name of the method. The calls of names beyond the first 1,000 are counted
// together, as breaker.OverflowKey.
func (k *Kit) Tallies() iter.Seq2[string, *Tally] {
	if all := k.counting.all.Load(); all != nil {
		return all.All()
	}
	return func(func(string, *Tally) bool) {}
}

// plainly takes a call that has its answer from the attempt as one to be counted
// together with that, and returns what by; nil if it is none.
func (c *Call) plainly(a *Attempt, res *call.Result) *Tally {
	t := a.tally
	if res.Class != call.OK || c.hedged {
		return nil
	}
	a.tally, c.counted = nil, true
	return t
}

// countPlain counts a call together with its attempt; nil counts nothing.
func (t *Tally) countPlain() {
	if t != nil {
		t.plain.Add()
	}
}

// count finds the counters of a call that begins. Most policies are of one method.
func (c *Call) count(all *tallies) {
	first := c.method.tally.Load()
	if first == nil || first.name != c.info.Method {
		first = c.lookTally(all, first)
	}
	c.tally = first
}

// lookTally is count for a call of another method than first.
func (c *Call) lookTally(all *tallies, first *Tally) *Tally {
	t := all.For(c.info.Method, c.now)
	if first == nil {
		c.method.tally.Store(t)
	}
	return t
}
