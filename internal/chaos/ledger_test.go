package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
)

// ledger keeps what was begun and what has ended, and what went wrong.
type ledger struct {
	calls, attempts, bodies pairs
	spans                   spanBook

	mu        sync.Mutex
	faults    []string
	arrived   map[string]arrivals // orders at the servers, by id
	unsent    map[string]string   // orders that provably never left, and who says so
	outcomes  map[string]int
	happened  map[string]int // in the kits
	breakers  map[*breaker.Breaker]bool
	bulkheads map[*bulkhead.Bulkhead]bool
}

func newLedger() *ledger {
	return &ledger{
		spans:   spanBook{open: map[spanID]int{}},
		arrived: map[string]arrivals{}, unsent: map[string]string{}, outcomes: map[string]int{}, happened: map[string]int{},
		breakers: map[*breaker.Breaker]bool{}, bulkheads: map[*bulkhead.Bulkhead]bool{},
	}
}

// pairs counts what begins and must end once.
type pairs struct{ begun, ended, twice atomic.Int64 }

// begin returns what ends it.
func (p *pairs) begin() (end func()) {
	p.begun.Add(1)
	var over atomic.Bool
	return func() {
		if over.Swap(true) {
			p.twice.Add(1)
			return
		}
		p.ended.Add(1)
	}
}

func (p *pairs) even() bool { return p.begun.Load() == p.ended.Load() && p.twice.Load() == 0 }

func (p *pairs) String() string {
	return fmt.Sprintf("%d begun, %d ended, %d of them twice", p.begun.Load(), p.ended.Load(), p.twice.Load())
}

// arrivals are those of one order.
type arrivals struct {
	n     int
	bare  bool   // one came without a key
	key   string // of the last
	other bool   // two came with different keys
}

// arrive notes that a server acts on an order. key is that of the request, "" if it
// has none.
func (l *ledger) arrive(o order, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.arrived[o.id]
	a.other = a.other || a.n > 0 && key != a.key
	a.n, a.bare, a.key = a.n+1, a.bare || key == "", key
	l.arrived[o.id] = a
}

// claimUnsent notes that a caller was told that an order never left.
func (l *ledger) claimUnsent(kind string, o order, who string) {
	if o.kept() {
		return // others order the same
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsent[o.id] = fmt.Sprintf("%s %s: %s", kind, o, who)
}

// found returns the faults so far, and times how often something has happened: a
// fleet's last refresh may still tell of its store while the test reads.
func (l *ledger) found() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.faults)
}

func (l *ledger) times(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.happened[what]
}

// repeated returns what arrived although it should not have, or again.
func (l *ledger) repeated() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, who := range l.unsent {
		if n := l.arrived[id].n; n > 0 {
			all = append(all, fmt.Sprintf("%s: not sent, but it arrived %d times", who, n))
		}
	}
	for id, a := range l.arrived {
		if strings.HasPrefix(id, once) && a.n > 1 && (a.bare || a.other) {
			all = append(all, fmt.Sprintf("%s arrived %d times; without a key: %v, with different keys: %v", id, a.n, a.bare, a.other))
		}
	}
	return all
}

func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < 50 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

func (l *ledger) outcome(kind, end string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[kind+": "+end]++
}

func (l *ledger) happens(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.happened[what]++
}

// hooks count the calls and attempts of m's kit as they are begun and ended.
func (l *ledger) hooks(m *member) holdfast.Hooks {
	return holdfast.Hooks{
		Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
			end := l.calls.begin()
			return nil, func(e holdfast.CallEnd) {
				if e.Fallback && e.Info.Safety != call.ReadOnly {
					l.fault("%s: a fallback has answered a write: %+v", m.name, e)
				}
				end()
			}
		},
		Attempt: func(_ context.Context, a call.Attempt) (context.Context, func(call.Result)) {
			if booked(a.Info.Method) {
				m.admitted.Add(1)
			}
			end := l.attempts.begin()
			return nil, func(call.Result) { end() }
		},
		Retry:    func(context.Context, holdfast.Retry) { l.happens("repeats") },
		Failover: func(context.Context, holdfast.Failover) { l.happens("moves to another upstream") },
		Hedged:   func(context.Context, holdfast.Hedge) { l.happens("hedges") },
		HedgeWon: func(context.Context, holdfast.Hedge) { l.happens("hedges that won") },
		Queued:   func(context.Context, holdfast.Queued) { l.happens("waits for a permit") },
		Fallback: func(_ context.Context, f holdfast.Fallback) {
			if f.Info.Safety != call.ReadOnly {
				l.fault("%s: a fallback was asked for a write: %+v", m.name, f)
			}
			if f.Err != nil {
				l.happens("fallbacks that failed")
				return
			}
			l.happens("answers of fallbacks, " + f.Kind.String())
		},
		Transition: func(t breaker.Transition) { l.happens("transitions to " + t.To.String()) },
		ProbeEnded: func(p breaker.ProbeEnd) { l.happens("probes " + p.Outcome.String()) },
	}
}

// visit remembers the kit's breakers and bulkheads: an update may take them out of
// its sight. It returns those breakers that may be given orders.
func (l *ledger) visit(k *holdfast.Kit) (all []*breaker.Breaker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, b := range k.Breakers() {
		l.breakers[b] = true
		if !booked(name) {
			all = append(all, b)
		}
	}
	for _, b := range k.Bulkheads() {
		l.bulkheads[b] = true
	}
	return all
}

// held returns what breakers and bulkheads still hold.
func (l *ledger) held() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := range l.bulkheads {
		if b.InUse() != 0 || b.Waiting() != 0 {
			all = append(all, fmt.Sprintf("bulkhead %s: %d permits out, %d waiting", b.Name(), b.InUse(), b.Waiting()))
		}
	}
	for b := range l.breakers {
		if c := b.Counts(); c.Unanswered != 0 || c.Probes != 0 {
			all = append(all, fmt.Sprintf("breaker %s (%v): %d tickets, %d probes", b.Name(), b.State(), c.Unanswered, c.Probes))
		}
	}
	return all
}
