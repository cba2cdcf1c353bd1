package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
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

	mu        sync.Mutex
	faults    []string
	done      map[string]int // how often the servers have carried an order out
	outcomes  map[string]int
	breakers  map[*breaker.Breaker]bool
	bulkheads map[*bulkhead.Bulkhead]bool
}

func newLedger() *ledger {
	return &ledger{
		done: map[string]int{}, outcomes: map[string]int{},
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

// hooks count a kit's calls and attempts as spans are begun and ended.
func (l *ledger) hooks() holdfast.Hooks {
	return holdfast.Hooks{
		Call: func(context.Context, call.Info) (context.Context, func(holdfast.CallEnd)) {
			end := l.calls.begin()
			return nil, func(holdfast.CallEnd) { end() }
		},
		Attempt: func(context.Context, call.Attempt) (context.Context, func(call.Result)) {
			end := l.attempts.begin()
			return nil, func(call.Result) { end() }
		},
	}
}

func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < 50 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// carriedOut notes that a server acts on an order.
func (l *ledger) carriedOut(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[id]++
}

func (l *ledger) timesDone(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done[id]
}

func (l *ledger) outcome(kind, end string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[kind+": "+end]++
}

// visit remembers the kit's breakers and bulkheads: an update may take them out of
// its sight.
func (l *ledger) visit(k *holdfast.Kit) (all []*breaker.Breaker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range k.Breakers() {
		l.breakers[b] = true
		all = append(all, b)
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

// watched is a transport whose response bodies are counted.
type watched struct {
	http.RoundTripper
	ledger *ledger
}

func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	if resp != nil && resp.Body != nil {
		resp.Body = &countedBody{ReadCloser: resp.Body, end: sync.OnceFunc(w.ledger.bodies.begin())}
	}
	return resp, err
}

// countedBody has ended when it was closed, or had no more to read.
type countedBody struct {
	io.ReadCloser
	end func()
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *countedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
