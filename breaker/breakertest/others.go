package breakertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

func testQuorum(b *bench) {
	report := func(worker string) breaker.Record {
		o := opening(worker)
		o.Quorum = 3
		return b.open(o)
	}
	rec := report("a")
	b.is("one of three opens nothing", !rec.Open && rec.Reports == 1)
	b.same("the same worker counts once", report("a").Reports, 1)
	b.same("two of three", report("b").Open, false)

	// A worker in trouble probes under the fleet's lock too.
	c := claim("a", rec.Generation)
	c.Quorum = 3
	b.same("holder", b.probe(c).Holder, "a/1")
	b.same("one lock", b.probe(claim("b", rec.Generation)).Holder, "a/1")
	rec = b.settle(settlement("a", rec.Generation, breaker.ProbeSucceeded, breaker.Closed))
	b.is("who recovers withdraws", !rec.Open && rec.Reports == 1)

	report("a")
	rec = report("c")
	b.is("three open", rec.Open && rec.Reports == 0 && rec.Worker == "c")
}

func testQuorumReport(b *bench) {
	o := opening("a")
	o.Quorum, o.Cooldown, o.Left, o.Keep = 2, 20*ms, 20*ms, 60*ms
	b.open(o)
	b.wait(45 * ms) // it is over half of Keep after the cooldown
	o = opening("b")
	o.Quorum = 2
	rec := b.open(o)
	b.is("a report ends", !rec.Open && rec.Reports == 1)

	c := claim("c", 0)
	c.Quorum = 2
	missing := b.must(b.Store.Probe(b.Context(), b.space, "missing", c))
	b.is("a claim on nothing is a report", !missing.Open && missing.Reports == 1 && missing.Holder == c.Token)
	e := settlement("c", 0, breaker.ProbeFailed, breaker.Open)
	e.Quorum = 2
	missing = b.must(b.Store.Settle(b.Context(), b.space, "missing", e))
	b.is("and so is a probe that fails", !missing.Open && missing.Reports == 1 && missing.Holder == "")
	o.Worker = "d"
	b.is("which counts", b.must(b.Store.Open(b.Context(), b.space, "missing", o)).Open)
}

func order(do breaker.Action) breaker.Order {
	o := breaker.Order{Opening: opening("op"), Do: do, Note: "maintenance until 5 o'clock"}
	o.Reason = breaker.ReasonFleetReleased
	return o
}

func testForce(b *bench) {
	none := b.force(order(breaker.ForceOver))
	b.is("nothing to release", !none.Open && !none.Forced && none.Generation == 0)
	b.is("a change all the same", none.Revision > order(breaker.ForceOver).Known)
	mark := b.changes(breaker.Mark{}).Mark
	rec := b.force(order(breaker.ForceNow))
	b.is("forced, and not open by itself", rec.Forced && !rec.Open)
	b.same("note", rec.Note, "maintenance until 5 o'clock")
	b.is("a change", len(b.changes(mark).Records) == 1)
	b.same("no probe passes", b.probe(claim("a", rec.Generation)).Holder, "")
	second := order(breaker.ForceNow)
	second.Note = ""
	b.same("another note", b.force(second).Note, "")

	opened := b.open(opening("a"))
	b.is("it can open besides", opened.Open && opened.Forced)
	b.same("no probe passes either", b.probe(claim("a", opened.Generation)).Holder, "")
	rec = b.force(order(breaker.ForceOver))
	b.is("released it is open for a cooldown", !rec.Forced && rec.Open && rec.Generation > opened.Generation)
	b.about("left", rec.Left, 10*time.Second)
	b.same("reason", rec.Reason, breaker.ReasonFleetReleased)
	b.same("released once", b.force(order(breaker.ForceOver)).Generation, rec.Generation)
}

func testReleaseOfWhatWasLost(b *bench) {
	again := order(breaker.ForceAgain) // by a worker that knows of the order
	again.Known = b.force(order(breaker.ForceOver)).Revision - 1
	b.is("whoever releases, it is not forced again", !b.force(again).Forced)

	over := order(breaker.ForceOver)
	over.Was = b.record().Revision
	b.is("who knows less opens nothing", !b.force(over).Open)
	over.Was = b.record().Revision + 1_000_000
	over.Known = over.Was
	rec := b.force(over)
	b.is("who knows of an order that was lost releases", rec.Open && rec.Generation > over.Was)
	b.about("left", rec.Left, 10*time.Second)
	over.Was = rec.Revision
	b.same("once", b.force(over).Generation, rec.Generation)
	again.Known = over.Known
	b.is("nor is that forced again", !b.force(again).Forced)
}

func testForceKept(b *bench) {
	b.is("nothing is kept", !b.force(order(breaker.ForceKept)).Forced)
	b.is("what was lost is forced again", b.force(order(breaker.ForceAgain)).Forced)
	longer := order(breaker.ForceKept)
	longer.Keep = time.Hour
	b.about("kept", b.force(longer).Keep, time.Hour)
	b.force(order(breaker.ForceOver))
	b.is("what was released is not forced again", !b.force(order(breaker.ForceAgain)).Forced)
	b.is("nor kept", !b.force(longer).Forced)
	late := order(breaker.ForceAgain)
	late.Known = b.force(longer).Revision - 1
	b.is("what has changed since is not forced again", !b.force(late).Forced)
	late.Known++
	b.is("what is older than the order is", b.force(late).Forced)
}

func testKeys(b *bench) {
	odd := []string{
		"", "m", "a b", "{", "}", "{}", "{a}{b}", "a\nb\r\n", "=%20&+,;:|", "\x00\xff", "Grüße", "GET /items/{id}", "-", "1 2 3",
	}
	for _, k := range odd {
		o := opening("worker of " + k)
		b.same(k, b.must(b.Store.Open(b.Context(), b.space, k, o)).Key, k)
	}
	ch := b.changes(breaker.Mark{})
	b.same("records", len(ch.Records), len(odd))
	for i, rec := range ch.Records {
		b.same("key", rec.Key, odd[i])
		b.same("worker", rec.Worker, "worker of "+odd[i])
	}
}

func testSpaces(b *bench) {
	for _, space := range []string{"fleet", "", "}", "{}", "a{b}c", "fleet}", "a b"} {
		b.space = space
		b.same("records in a new space", len(b.changes(breaker.Mark{}).Records), 0)
		b.open(opening("a"))
		b.same("records in "+space, len(b.changes(breaker.Mark{}).Records), 1)
	}
}

func testChanges(b *bench) {
	at := func(k string, do func() breaker.Record) breaker.Mark {
		before := b.changes(breaker.Mark{}).Mark
		rec := do()
		ch := b.changes(before)
		if before.Epoch != 0 {
			b.is("only the change is read: "+k, !ch.Whole && len(ch.Records) == 1)
		}
		b.same("record", ch.Records[len(ch.Records)-1].Mark, rec.Mark)
		b.same("mark", ch.Mark, rec.Mark)
		b.is("nothing after it", len(b.changes(ch.Mark).Records) == 0 && !b.changes(ch.Mark).Whole)
		return ch.Mark
	}
	first := at("open", func() breaker.Record { return b.open(opening("a")) })
	at("another", func() breaker.Record {
		return b.must(b.Store.Open(b.Context(), b.space, "another", opening("a")))
	})
	gen := b.record().Generation
	at("probe", func() breaker.Record { return b.probe(claim("a", gen)) })
	last := at("close", func() breaker.Record { return b.settle(settlement("a", gen, breaker.ProbeSucceeded, breaker.Closed)) })

	ch := b.changes(first)
	b.is("each key once, in the order of its last change", len(ch.Records) == 2 && ch.Records[1].Key == key)
	for name, m := range map[string]breaker.Mark{
		"of another epoch": {Epoch: last.Epoch + 1, Revision: last.Revision},
		"ahead":            {Epoch: last.Epoch, Revision: last.Revision + 1},
		"zero":             {},
	} {
		ch := b.changes(m)
		b.is("whole after a mark that is "+name, ch.Whole && len(ch.Records) == 2)
	}
}

func testPages(b *bench) {
	const n = 1100
	for i := range n {
		b.must(b.Store.Open(b.Context(), b.space, fmt.Sprint(i), opening("a")))
	}
	var after breaker.Mark
	got := 0
	for more, pages := true, 0; more; pages++ {
		b.is("it comes to an end", pages < n)
		ch := b.changes(after)
		for _, rec := range ch.Records {
			b.same("key", rec.Key, fmt.Sprint(got))
			got++
		}
		after, more = ch.Mark, ch.More
	}
	b.same("records", got, n)
}

func testRevisions(b *bench) {
	o := opening("a")
	o.Known = 1 << 51 // of a store that had more and lost it
	rec := b.open(o)
	b.is("a worker never sees revisions fall", rec.Revision > o.Known)
	next := b.must(b.Store.Open(b.Context(), b.space, "next", opening("b")))
	b.is("they grow", next.Revision > rec.Revision && next.Epoch == rec.Epoch)
}

func testContext(b *bench) {
	ctx := expired(b.Context())
	_, err := b.Store.Changes(ctx, b.space, breaker.Mark{})
	b.is("Changes fails", err != nil)
	for what, do := range map[string]func() (breaker.Record, error){
		"Open":  func() (breaker.Record, error) { return b.Store.Open(ctx, b.space, key, opening("a")) },
		"Probe": func() (breaker.Record, error) { return b.Store.Probe(ctx, b.space, key, claim("a", 0)) },
		"Settle": func() (breaker.Record, error) {
			return b.Store.Settle(ctx, b.space, key, settlement("a", 0, breaker.ProbeFailed, breaker.Open))
		},
		"Force": func() (breaker.Record, error) { return b.Store.Force(ctx, b.space, key, order(breaker.ForceNow)) },
	} {
		_, err := do()
		b.is(what+" fails", err != nil)
	}
	b.same("nothing was done", len(b.changes(breaker.Mark{}).Records), 0)
}

func testWatch(b *bench) {
	w, ok := b.Store.(breaker.Watcher)
	if !ok {
		b.Skip("the store is no breaker.Watcher, which it need not be")
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wakes atomic.Int32
	ended := make(chan error, 1)
	go func() { ended <- w.Watch(ctx, b.space, func() { wakes.Add(1) }) }()
	reach := func(what string, n int32) {
		for range 200 {
			if wakes.Load() >= n {
				return
			}
			b.wait(5 * ms)
		}
		b.Fatalf("%s: not told of; %d wakes, want %d", what, wakes.Load(), n)
	}
	reach("listening", 1)
	told := wakes.Load()
	step := func(what string, do func()) {
		do()
		told++
		reach(what, told)
	}
	var rec breaker.Record
	step("open", func() { rec = b.open(opening("a")) })
	b.probe(claim("a", rec.Generation))
	step("close", func() { b.settle(settlement("a", rec.Generation, breaker.ProbeSucceeded, breaker.Closed)) })
	step("force", func() { b.force(order(breaker.ForceNow)) })
	step("release", func() { b.force(order(breaker.ForceOver)) })
	b.wait(20 * ms)
	b.same("wakes", wakes.Load(), told)
	b.space = "another"
	b.open(opening("a"))
	b.wait(20 * ms)
	b.same("of another space", wakes.Load(), told)
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
