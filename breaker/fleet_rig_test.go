package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/breaker/breakertest"
)

const ms = time.Millisecond

// worker is one process of a fleet, with one breaker.
type worker struct {
	*testing.T
	name  string
	wire  *wire
	fleet *breaker.Fleet
	group *breaker.Group
	moves *moves
	moved func(breaker.Transition)
}

// moves are a worker's transitions.
type moves struct {
	sync.Mutex
	list []breaker.Transition
}

func (m *moves) all() []breaker.Transition {
	m.Lock()
	defer m.Unlock()
	return append([]breaker.Transition(nil), m.list...)
}

// shared is a policy for tests: five failures in a row open for 10 s.
func shared() breaker.Config {
	return breaker.Config{
		Consecutive: 5, Cooldown: 10 * time.Second, MaxCooldown: 40 * time.Second, Jitter: breaker.NoJitter,
		ProbeSuccesses: 1, ProbeTimeout: 2 * time.Second,
	}
}

// join makes a worker of the fleet that store is the store of. It has a wire to
// it of its own, to be cut.
func join(t *testing.T, store breaker.Store, name string, c breaker.Config, more ...func(*breaker.Sharing)) *worker {
	t.Helper()
	w := &worker{T: t, name: name, wire: &wire{Store: store}, moves: &moves{}}
	s := breaker.Sharing{Store: w.wire, Worker: name}
	for _, change := range more {
		change(&s)
	}
	var err error
	w.fleet, err = breaker.Join(s)
	require.NoError(t, err)
	c.Hooks.Transition = func(tr breaker.Transition) {
		w.moves.Lock()
		defer w.moves.Unlock()
		if n := len(w.moves.list); n > 0 && w.moves.list[n-1].Key == tr.Key && w.moves.list[n-1].To != tr.From {
			t.Errorf("B12: the chain of events is broken: from %v, after one to %v", tr.From, w.moves.list[n-1].To)
		}
		w.moves.list = append(w.moves.list, tr)
		if w.moved != nil {
			w.moved(tr)
		}
	}
	w.group, err = w.fleet.Group(c, 0)
	require.NoError(t, err)
	return w
}

// push listens for changes.
func push(s *breaker.Sharing) { s.Push = true }

func fleetOf(t *testing.T, n int, store breaker.Store, c breaker.Config, more ...func(*breaker.Sharing)) []*worker {
	t.Helper()
	all := make([]*worker, n)
	for i := range all {
		all[i] = join(t, store, fmt.Sprint("w", i), c, more...)
	}
	return all
}

func (w *worker) b() *breaker.Breaker { return w.group.For("db") }

func (w *worker) admit() *breaker.Ticket {
	w.Helper()
	t, err := w.b().Allow()
	require.NoError(w, err, w.name)
	return &t
}

func (w *worker) probe() *breaker.Ticket {
	w.Helper()
	t := w.admit()
	require.True(w, t.Probe(), "%s: not a probe", w.name)
	return t
}

func (w *worker) refused() *breaker.OpenError {
	w.Helper()
	_, err := w.b().Allow()
	require.ErrorIs(w, err, breaker.ErrOpen, w.name)
	var open *breaker.OpenError
	require.ErrorAs(w, err, &open)
	return open
}

func done(t *breaker.Ticket, v breaker.Verdict) { t.Done(breaker.Outcome{Verdict: v}) }

func (w *worker) call(n int, v breaker.Verdict) {
	w.Helper()
	for range n {
		done(w.admit(), v)
	}
}

// fails opens the breaker by failures.
func (w *worker) fails() {
	w.Helper()
	for i := 0; w.b().State() == breaker.Closed; i++ {
		require.Less(w, i, 1000)
		w.call(1, breaker.Failure)
	}
	w.state(breaker.Open)
}

func (w *worker) state(want breaker.State) {
	w.Helper()
	require.Equal(w, want, w.b().State(), w.name)
}

func (w *worker) isNot(no breaker.State) {
	w.Helper()
	require.NotEqual(w, no, w.b().State(), w.name)
}

func (w *worker) path() (states []breaker.State) {
	for _, m := range w.moves.all() {
		states = append(states, m.To)
	}
	return states
}

func states(t *testing.T, want breaker.State, all []*worker) {
	t.Helper()
	for _, w := range all {
		w.state(want)
	}
}

// use lets every worker be in use for a time: a look does not count, an Allow
// does.
func use(d time.Duration, all ...*worker) {
	for end := time.Now().Add(d); ; time.Sleep(100 * ms) {
		synctest.Wait()
		if !time.Now().Before(end) {
			return
		}
		for _, w := range all {
			if t, err := w.b().Allow(); err == nil {
				if t.Probe() {
					panic("a probe, where none was due")
				}
				done(&t, breaker.Neutral)
			}
		}
	}
}

// record returns what the store has of the key.
func record(t *testing.T, s breaker.Store) breaker.Record {
	t.Helper()
	ch, err := s.Changes(context.Background(), "holdfast", breaker.Mark{})
	require.NoError(t, err)
	for _, rec := range ch.Records {
		if rec.Key == "db" {
			return rec
		}
	}
	return breaker.Record{Key: "db"}
}

// wire is a worker's way to the store.
type wire struct {
	breaker.Store
	mode     atomic.Int32
	other    atomic.Pointer[breakertest.Memory] // failed over to, if not nil
	delay    func() time.Duration               // of a command; nil is none
	late     atomic.Int64                       // ns that the answer to a refresh takes to arrive
	commands atomic.Int64
	refresh  atomic.Int32 // under way
	most     atomic.Int32 // at once
}

// The modes of a wire.
const (
	sound int32 = iota
	cut         // fails at once
	hung        // hangs until the context is over
	deaf        // hangs whatever the context does, for a minute
)

func (w *wire) to() breaker.Store {
	if other := w.other.Load(); other != nil {
		return other
	}
	return w.Store
}

var errCut = errors.New("the wire is cut")

func (w *wire) pass(ctx context.Context) error {
	w.commands.Add(1)
	if w.delay != nil {
		time.Sleep(w.delay())
	}
	switch w.mode.Load() {
	case cut:
		return errCut
	case hung:
		<-ctx.Done()
		return ctx.Err()
	case deaf:
		time.Sleep(time.Minute)
	}
	return ctx.Err()
}

func (w *wire) Changes(ctx context.Context, space string, after breaker.Mark) (breaker.Changes, error) {
	n := w.refresh.Add(1)
	defer w.refresh.Add(-1)
	for m := w.most.Load(); n > m && !w.most.CompareAndSwap(m, n); m = w.most.Load() {
	}
	if err := w.pass(ctx); err != nil {
		return breaker.Changes{}, err
	}
	ch, err := w.to().Changes(ctx, space, after)
	time.Sleep(time.Duration(w.late.Load()))
	return ch, err
}

func (w *wire) Open(ctx context.Context, space, key string, o breaker.Opening) (breaker.Record, error) {
	if err := w.pass(ctx); err != nil {
		return breaker.Record{}, err
	}
	return w.to().Open(ctx, space, key, o)
}

func (w *wire) Probe(ctx context.Context, space, key string, c breaker.Claim) (breaker.Record, error) {
	if err := w.pass(ctx); err != nil {
		return breaker.Record{}, err
	}
	return w.to().Probe(ctx, space, key, c)
}

func (w *wire) Settle(ctx context.Context, space, key string, e breaker.Settlement) (breaker.Record, error) {
	if err := w.pass(ctx); err != nil {
		return breaker.Record{}, err
	}
	return w.to().Settle(ctx, space, key, e)
}

func (w *wire) Force(ctx context.Context, space, key string, o breaker.Order) (breaker.Record, error) {
	if err := w.pass(ctx); err != nil {
		return breaker.Record{}, err
	}
	return w.to().Force(ctx, space, key, o)
}

func (w *wire) Watch(ctx context.Context, space string, wake func()) error {
	if w.mode.Load() != sound {
		return errCut
	}
	return w.Store.(breaker.Watcher).Watch(ctx, space, wake)
}

// bubble runs a test with a store in virtual time, and lets it settle at the
// end: that is the leak check, nothing may be left then.
func bubble(t *testing.T, test func(*testing.T, *breakertest.Memory)) {
	synctest.Test(t, func(t *testing.T) {
		test(t, breakertest.NewMemory())
		time.Sleep(2 * time.Minute)
	})
}
