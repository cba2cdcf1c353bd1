package breakertest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// Harness makes the stores that [Run] tests.
type Harness struct {
	// New returns a store in which there is nothing. What it needs closed it has
	// closed by t.Cleanup.
	New func(t *testing.T) breaker.Store

	// Around runs the body of each test, in a testing/synctest bubble say. Nil
	// is: as it is.
	Around func(t *testing.T, body func(*testing.T))

	// Wait lets so much time pass on the store's clock. Nil is time.Sleep.
	Wait func(time.Duration)
}

// Run tests a store. The longest wait is a tenth of a second, and cooldowns and
// leases are such that a store whose answers take 10 ms passes.
func Run(t *testing.T, h Harness) {
	if h.Wait == nil {
		h.Wait = time.Sleep
	}
	if h.Around == nil {
		h.Around = func(t *testing.T, body func(*testing.T)) { body(t) }
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h.Around(t, func(t *testing.T) {
				c.run(&bench{T: t, Store: h.New(t), wait: h.Wait, space: "fleet"})
			})
		})
	}
}

var cases = []struct {
	name string
	run  func(*bench)
}{
	{"Empty", testEmpty},
	{"OpenIsSetIfAbsent", testOpen},
	{"ManyOpenAtOnce", testOpenRace},
	{"CloseComparesGenerations", testClose},
	{"LateOpening", testLateOpening},
	{"OneLock", testLock},
	{"LockExpires", testLockExpires},
	{"Unlock", testUnlock},
	{"ProbesCount", testProbesCount},
	{"Reopen", testReopen},
	{"ProbeOfNoRecord", testProbeMissing},
	{"SettleOfNoRecord", testSettleMissing},
	{"SettleWithoutLock", testSettleUnlocked},
	{"Quorum", testQuorum},
	{"QuorumReportEnds", testQuorumReport},
	{"Force", testForce},
	{"ReleaseOfWhatWasLost", testReleaseOfWhatWasLost},
	{"ForceKeptAndAgain", testForceKept},
	{"Expiry", testExpiry},
	{"Keys", testKeys},
	{"Spaces", testSpaces},
	{"Changes", testChanges},
	{"Pages", testPages},
	{"Revisions", testRevisions},
	{"Context", testContext},
	{"Watch", testWatch},
}

// bench is one test's store with what the tests say to it again and again.
type bench struct {
	*testing.T
	breaker.Store
	wait  func(time.Duration)
	space string
}

const (
	key  = "https://api.example.com:443|GET /items/{id}"
	keep = time.Minute
	ms   = time.Millisecond
)

// opening is one of 10 s by worker.
func opening(worker string) breaker.Opening {
	return breaker.Opening{
		Worker: worker, Reason: breaker.ReasonFailureRate, Nth: 1,
		Cooldown: 10 * time.Second, Left: 10 * time.Second, Keep: keep,
	}
}

func claim(worker string, generation uint64) breaker.Claim {
	return breaker.Claim{
		Opening: opening(worker), Shared: true, Token: worker + "/1", Generation: generation, Lease: 20 * time.Second,
	}
}

func settlement(worker string, generation uint64, how breaker.ProbeOutcome, to breaker.State) breaker.Settlement {
	return breaker.Settlement{Claim: claim(worker, generation), Locked: true, Outcome: how, To: to}
}

func (b *bench) must(rec breaker.Record, err error) breaker.Record {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	return rec
}

func (b *bench) open(o breaker.Opening) breaker.Record {
	b.Helper()
	return b.must(b.Store.Open(b.Context(), b.space, key, o))
}

func (b *bench) probe(c breaker.Claim) breaker.Record {
	b.Helper()
	return b.must(b.Store.Probe(b.Context(), b.space, key, c))
}

func (b *bench) settle(e breaker.Settlement) breaker.Record {
	b.Helper()
	return b.must(b.Store.Settle(b.Context(), b.space, key, e))
}

func (b *bench) force(o breaker.Order) breaker.Record {
	b.Helper()
	return b.must(b.Store.Force(b.Context(), b.space, key, o))
}

func (b *bench) changes(after breaker.Mark) breaker.Changes {
	b.Helper()
	ch, err := b.Store.Changes(b.Context(), b.space, after)
	if err != nil {
		b.Fatal(err)
	}
	return ch
}

// record returns what the store has of key.
func (b *bench) record() breaker.Record {
	b.Helper()
	for _, rec := range b.changes(breaker.Mark{}).Records {
		if rec.Key == key {
			return rec
		}
	}
	return breaker.Record{Key: key}
}

// same compares values by their fields.
func (b *bench) same(what string, got, want any) {
	b.Helper()
	if !reflect.DeepEqual(got, want) {
		b.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}

func (b *bench) is(what string, ok bool) {
	b.Helper()
	if !ok {
		b.Fatal("not true: ", what)
	}
}

// about holds a time against what it was a moment ago.
func (b *bench) about(what string, got, want time.Duration) {
	b.Helper()
	if got > want || got < want-time.Second {
		b.Fatalf("%s: got %v, want %v or a little less", what, got, want)
	}
}

func expired(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
