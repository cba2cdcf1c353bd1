package breakertest

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

func testEmpty(b *bench) {
	ch := b.changes(breaker.Mark{})
	b.is("there are no records", len(ch.Records) == 0 && !ch.More)
	b.is("the answer is whole", ch.Whole)
	b.is("and so it is after a mark of another store", b.changes(breaker.Mark{Epoch: 7, Revision: 9}).Whole)
}

func testOpen(b *bench) {
	first := b.open(opening("a"))
	b.is("it is open", first.Open && first.Generation != 0 && first.Revision >= first.Generation && first.Epoch != 0)
	b.same("key", first.Key, key)
	b.same("worker", first.Worker, "a")
	b.same("reason", first.Reason, breaker.ReasonFailureRate)
	b.same("nth", first.Nth, 1)
	b.same("cooldown", first.Cooldown, 10*time.Second)
	b.about("left", first.Left, 10*time.Second)
	b.about("keep", first.Keep, keep)
	b.wait(20 * ms)

	o := opening("b")
	o.Cooldown, o.Left, o.Nth, o.Reason = time.Hour, time.Hour, 5, breaker.ReasonStalled
	second := b.open(o)
	b.same("generation of who joins", second.Generation, first.Generation)
	b.same("revision of who joins", second.Revision, first.Revision)
	b.same("worker of who joins", second.Worker, "a")
	b.same("cooldown of who joins", second.Cooldown, 10*time.Second)
	b.same("nth of who joins", second.Nth, 1)
	b.is("one opened-at", second.Age >= 20*ms && second.Left <= 10*time.Second-20*ms)
	b.same("what is read", b.record().Generation, first.Generation)

	later := opening("c")
	later.Left = 4 * time.Second // it has been open for a while
	rec := b.must(b.Store.Open(b.Context(), b.space, "other", later))
	b.about("what is left of one told late", rec.Left, 4*time.Second)
	b.is("its age", rec.Age >= 6*time.Second)
}

func testOpenRace(b *bench) {
	const workers = 50
	got := make([]breaker.Record, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			rec, err := b.Store.Open(b.Context(), b.space, key, opening(fmt.Sprint("w", i)))
			if err != nil {
				b.Error(err)
			}
			got[i] = rec
		})
	}
	wg.Wait()
	for _, rec := range got {
		b.same("generation", rec.Generation, got[0].Generation)
		b.same("worker", rec.Worker, got[0].Worker)
	}
	b.same("records", len(b.changes(breaker.Mark{}).Records), 1)
}

func testClose(b *bench) {
	first := b.open(opening("a"))
	mark := b.changes(breaker.Mark{}).Mark
	b.probe(claim("a", first.Generation))
	other := settlement("a", first.Generation-1, breaker.ProbeSucceeded, breaker.Closed)
	b.same("a close of another generation", b.settle(other).Open, true)
	b.same("stays open for it", b.record().Generation, first.Generation)

	closed := b.settle(settlement("a", first.Generation, breaker.ProbeSucceeded, breaker.Closed))
	b.is("it is closed", !closed.Open && closed.Generation > first.Generation && closed.Holder == "")
	ch := b.changes(mark)
	b.same("the close is a change", len(ch.Records), 1)
	b.same("that all can read", ch.Records[0].Generation, closed.Generation)

	again := b.open(known(opening("b"), closed.Revision))
	b.is("it opens anew", again.Open && again.Generation > closed.Generation && again.Good == 0)
	late := b.settle(settlement("a", first.Generation, breaker.ProbeSucceeded, breaker.Closed))
	b.is("a late success closes nothing", late.Open && late.Generation == again.Generation)
	late = b.settle(settlement("a", first.Generation, breaker.ProbeFailed, breaker.Open))
	b.is("a late failure opens nothing", late.Open && late.Generation == again.Generation)
}

func known(o breaker.Opening, revision uint64) breaker.Opening {
	o.Known = revision
	return o
}

func testLateOpening(b *bench) {
	first := b.open(opening("a"))
	b.probe(claim("a", first.Generation))
	closed := b.settle(settlement("a", first.Generation, breaker.ProbeSucceeded, breaker.Closed))
	rec := b.open(known(opening("b"), first.Revision))
	b.is("whose results are older than the recovery does not open", !rec.Open && rec.Generation == closed.Generation)
	rec = b.open(known(opening("b"), closed.Revision))
	b.is("who knows of it does", rec.Open)
}

func testReopen(b *bench) {
	first := b.open(opening("a"))
	b.probe(claim("b", first.Generation))
	e := settlement("b", first.Generation, breaker.ProbeFailed, breaker.Open)
	e.Cooldown, e.Left, e.Nth, e.Reason = 20*time.Second, 20*time.Second, 2, breaker.ReasonProbeFailed
	rec := b.settle(e)
	b.is("a new generation", rec.Open && rec.Generation > first.Generation)
	b.same("nth", rec.Nth, 2)
	b.same("reason", rec.Reason, breaker.ReasonProbeFailed)
	b.same("cooldown", rec.Cooldown, 20*time.Second)
	b.about("left", rec.Left, 20*time.Second)
	b.same("worker", rec.Worker, "b")
	b.same("holder", rec.Holder, "")
	b.same("probes", rec.Good+rec.Bad, 0)
}

func testExpiry(b *bench) {
	o := opening("a")
	o.Cooldown, o.Left, o.Keep = 30*ms, 30*ms, 60*ms
	first := b.open(o)
	b.wait(35 * ms)
	rec := b.record()
	b.is("it outlives its cooldown", rec.Open && rec.Left == 0 && rec.Generation == first.Generation)
	b.wait(30 * ms)
	b.same("then it is gone", len(b.changes(breaker.Mark{}).Records), 0)
	o.Keep = keep
	b.is("and the next one opens", b.open(o).Generation > first.Generation)
}
