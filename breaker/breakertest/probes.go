package breakertest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

func testLock(b *bench) {
	first := b.open(opening("a"))
	var granted atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			c := claim(fmt.Sprint("w", i), first.Generation)
			rec, err := b.Store.Probe(b.Context(), b.space, key, c)
			switch {
			case err != nil:
				b.Error(err)
			case rec.Holder == c.Token:
				granted.Add(1)
			case rec.Holder == "" || rec.Lease <= 0 || rec.Lease > c.Lease:
				b.Errorf("who does not get it is told who has it: %+v", rec)
			}
		})
	}
	wg.Wait()
	b.same("locks given", granted.Load(), int32(1))
	b.about("lease", b.record().Lease, 20*time.Second)
	b.same("generation", b.record().Generation, first.Generation)
	b.same("with another generation", b.probe(claim("x", first.Generation+1)).Holder, b.record().Holder)
}

func testLockExpires(b *bench) {
	first := b.open(opening("a"))
	c := claim("dead", first.Generation)
	c.Lease = 40 * ms
	b.same("holder", b.probe(c).Holder, c.Token)
	b.same("while it lasts", b.probe(claim("next", first.Generation)).Holder, c.Token)
	b.wait(45 * ms)
	b.same("is shown no more", b.record().Holder, "")
	late := b.settle(settlement("dead", first.Generation, breaker.ProbeSucceeded, breaker.Closed))
	b.is("an expired holder closes nothing", late.Open && late.Generation == first.Generation)
	b.same("after it", b.probe(claim("next", first.Generation)).Holder, "next/1")
	late = b.settle(settlement("dead", first.Generation, breaker.ProbeFailed, breaker.Open))
	b.same("an expired holder opens nothing", late.Generation, first.Generation)
	b.same("and frees nothing", late.Holder, "next/1")
}

func testUnlock(b *bench) {
	first := b.open(opening("a"))
	b.probe(claim("a", first.Generation))
	b.same("by another", b.settle(settlement("b", first.Generation, breaker.ProbeNeutral, breaker.HalfOpen)).Holder, "a/1")
	rec := b.settle(settlement("a", first.Generation, breaker.ProbeNeutral, breaker.HalfOpen))
	b.is("by its owner", rec.Holder == "" && rec.Open && rec.Generation == first.Generation && rec.Good+rec.Bad == 0)
	b.same("the next", b.probe(claim("b", first.Generation)).Holder, "b/1")
	b.is("a lock is a change that others see", b.record().Revision > rec.Revision)
}

func testProbesCount(b *bench) {
	first := b.open(opening("a"))
	for i, how := range []breaker.ProbeOutcome{
		breaker.ProbeSucceeded, breaker.ProbeSucceeded, breaker.ProbeNeutral,
		breaker.ProbeFailed, breaker.ProbeSlow, breaker.ProbeExpired,
	} {
		w := fmt.Sprint("w", i)
		b.same("holder", b.probe(claim(w, first.Generation)).Holder, w+"/1")
		b.settle(settlement(w, first.Generation, how, breaker.HalfOpen))
	}
	rec := b.record()
	b.same("good", rec.Good, 2)
	b.same("bad", rec.Bad, 3)
}

func testProbeMissing(b *bench) {
	rec := b.probe(claim("a", 12345))
	b.is("what was lost is made again, its cooldown over", rec.Open && rec.Left == 0 && rec.Generation != 0)
	b.same("holder", rec.Holder, "a/1")
	b.is("and closes", !b.settle(settlement("a", rec.Generation, breaker.ProbeSucceeded, breaker.Closed)).Open)

	alone := claim("a", 77)
	alone.Shared = false
	rec = b.must(b.Store.Probe(b.Context(), b.space, "own affair", alone))
	b.is("a worker's own affair does not open the circuit", !rec.Open && rec.Generation == 0)
	b.same("but has a lock", rec.Holder, "a/1")
	other := claim("b", 0)
	b.same("one", b.must(b.Store.Probe(b.Context(), b.space, "own affair", other)).Holder, "a/1")
	rec = b.must(b.Store.Settle(b.Context(), b.space, "own affair", settlement("a", 0, breaker.ProbeSucceeded, breaker.Closed)))
	b.is("that is given back", !rec.Open && rec.Holder == "")
}

func testSettleMissing(b *bench) {
	rec := b.settle(settlement("a", 5, breaker.ProbeSucceeded, breaker.Closed))
	b.is("a close makes no record", !rec.Open && rec.Revision == 0 && len(b.changes(breaker.Mark{}).Records) == 0)
	rec = b.settle(settlement("a", 5, breaker.ProbeFailed, breaker.Open))
	b.is("an opening does", rec.Open && rec.Generation != 0)
}

func testSettleUnlocked(b *bench) {
	first := b.open(opening("a"))
	e := settlement("a", first.Generation, breaker.ProbeSucceeded, breaker.Closed)
	e.Locked = false // the store was silent when the probe began
	b.probe(claim("b", first.Generation))
	b.is("while another has the lock it says nothing", b.settle(e).Open)
	b.settle(settlement("b", first.Generation, breaker.ProbeNeutral, breaker.HalfOpen))
	b.is("else it counts", !b.settle(e).Open)
}
