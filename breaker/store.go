package breaker

import (
	"context"
	"time"
)

// Store keeps what the workers of a fleet know together: a record for each key
// that is in trouble. [Sharing] takes one; breaker/redisstore is one on Redis or
// Valkey, and breaker/breakertest has one in memory and the suite that every
// implementation must pass.
//
// Every method does its work in one atomic step and by the store's own clock;
// what it returns of times are durations as of that step. A space keeps the keys
// of one fleet apart from those of others. What is missing, has expired or
// cannot be read counts as not there: it is no error.
//
// An error says that the store did not do its work, or that nobody knows. A
// method should return once ctx is done; one that does not is left behind.
type Store interface {
	// Changes returns the records that have changed after a mark, those that
	// changed first coming first. It returns all of them, and says so, if the
	// mark is not of the store's present epoch or is ahead of it.
	Changes(ctx context.Context, space string, after Mark) (Changes, error)

	// Open opens the circuit of key unless it is open: then the record stays as
	// it is. Nor does it open one that was closed after o.Known, for what speaks
	// for opening may be older than that. With a quorum it is noted as a report,
	// and the circuit opens once that many workers have one that is not over.
	Open(ctx context.Context, space, key string, o Opening) (Record, error)

	// Probe takes the lock of the one probe that key may have, and has got it if
	// the record's Holder is c.Token. It is not given if the generation is
	// another than c.Generation, if the circuit is forced open, or while another
	// holds it. If there is no record one is made, by c.Opening, its cooldown
	// over.
	Probe(ctx context.Context, space, key string, c Claim) (Record, error)

	// Settle ends a probe: it counts it, gives the lock back and opens or closes
	// the circuit if e.To says so. It does nothing if the generation is another
	// or the lock is not e's any more. If there is no record only an opening
	// makes one.
	Settle(ctx context.Context, space, key string, e Settlement) (Record, error)

	// Force forces a circuit open or releases it.
	Force(ctx context.Context, space, key string, o Order) (Record, error)
}

// Watcher is what a Store may do besides: tell of changes as they happen.
type Watcher interface {
	// Watch calls wake soon after a circuit of the space has opened, closed, or
	// was forced or released. It calls it once when it begins to listen. It
	// returns once ctx is done, or with an error when it cannot listen.
	Watch(ctx context.Context, space string, wake func()) error
}

// Mark is a place in the sequence of a space's changes. The zero Mark is before
// all of them.
type Mark struct {
	// Epoch tells a space that was lost and began anew from the one before.
	Epoch uint64

	// Revision grows with every change of a record.
	Revision uint64
}

// Changes is what [Store].Changes returns.
type Changes struct {
	// Mark is to be asked for next.
	Mark

	// Whole says that these are all records there are, from the first to Mark.
	Whole bool

	// More says that the answer was cut off: there are changes after Mark.
	More bool

	Records []Record
}

// Record is what a store knows of one key. The zero Record, but for its Key, is
// that of a key of which it knows nothing.
type Record struct {
	Key string

	// Mark is that of its last change.
	Mark

	// Generation is the revision at which it was last opened or closed. It is 0
	// if it never was.
	Generation uint64

	// Open says that the circuit is open; Age is how long it has been, Left how
	// much is left of its Cooldown, 0 if that is over.
	Open                bool
	Age, Left, Cooldown time.Duration

	// Nth is the number of the opening in a row, from 1; Reason is why it came
	// to it, and Worker whose it is.
	Nth    int
	Reason Reason
	Worker string

	// Good and Bad count the probes of this generation.
	Good, Bad int

	// Holder is the token of the probe in flight, whose lock lasts for Lease
	// yet; "" if there is none.
	Holder string
	Lease  time.Duration

	// Forced says that the circuit is forced open, and Note why.
	Forced bool
	Note   string

	// Reports is how many workers report trouble.
	Reports int

	// Keep is how long it is until the record expires.
	Keep time.Duration
}

// live reports whether the record matters to somebody who does not know the key.
func (r *Record) live() bool { return r.Open || r.Forced }

// Opening is why and for how long a circuit is to be open.
type Opening struct {
	Worker string
	Reason Reason
	Nth    int

	// Cooldown is the whole, of which Left is still to come.
	Cooldown, Left time.Duration

	// Quorum is how many workers must report trouble; 0 and 1 are the same.
	Quorum int

	// Known is the revision up to which the worker knows the space.
	Known uint64

	// Keep is how long the record is kept from now on, longer than Left.
	Keep time.Duration
}

// Claim asks for the lock of a probe.
type Claim struct {
	// Opening is that of the worker: a record that is missing is made by it. It
	// is made open only if Shared.
	Opening
	Shared bool

	// Token is the lock's owner, another for each claim. It is not empty.
	Token string

	// Generation is that of the record on which the worker's opening rests.
	Generation uint64

	// Lease is how long the lock is kept if nobody settles.
	Lease time.Duration
}

// Settlement is the end of a probe.
type Settlement struct {
	Claim

	// Locked says that the lock was granted. A probe that was made without it,
	// since the store was silent, settles unless somebody else has it.
	Locked bool

	// Outcome is how the probe ended; a neutral one counts nowhere.
	Outcome ProbeOutcome

	// To is HalfOpen, Closed or Open: the state to which the outcome leads. For
	// Open the Opening of the claim says how.
	To State
}

// Order forces a circuit open or releases it.
type Order struct {
	// Opening is that which follows a release; its Known and Keep count for
	// every order.
	Opening

	// Do is what to do.
	Do   Action
	Note string // why it is forced

	// Was is for a release the revision at which the worker knows the circuit to be
	// forced open; 0 if it does not.
	Was uint64
}

// Action is what an [Order] does.
type Action uint8

// The actions.
const (
	_ Action = iota

	// ForceNow forces the circuit open, or replaces the note.
	ForceNow

	// ForceKept keeps a forced circuit's record for longer, and does nothing to
	// one that is not forced.
	ForceKept

	// ForceAgain forces the circuit open if it is not, and its record, if there
	// is one, has not changed after the order's Known.
	ForceAgain

	// ForceOver releases the circuit: it is open by the order's Opening. So is one that
	// is not forced, if its record is older than the order's Was: the store has lost
	// what is released. Any other stays as it is; but its record has changed, or is
	// made, so that no worker which knows the circuit as forced has it forced again.
	ForceOver
)
