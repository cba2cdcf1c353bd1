package telemetry

import (
	"cmp"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
)

// methodNames says which methods of a kit have series of their own: the first ones.
// Once a method has them it keeps them, and what the others count is in series that
// they share, so that none falls.
type methodNames struct {
	most int
	mu   sync.Mutex
	own  map[string]bool
}

func newMethodNames(most int) *methodNames {
	return &methodNames{most: most, own: map[string]bool{}}
}

// of returns the name under which a method is reported.
func (m *methodNames) of(method string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.own[method]:
	case method == breaker.OverflowKey || len(m.own) >= m.most:
		return otherKey
	default:
		m.own[method] = true
	}
	return redact(method)
}

var causes = holdfast.Causes()

// counted is what the calls of one method, or of several, have come to.
type counted struct {
	calls, attempts, refusals, denied               []uint64 // by class and by cause
	retries, hedges, hedgesWon, failovers, fallback uint64
}

func newCounted() *counted {
	return &counted{
		calls: make([]uint64, call.Permanent+1), attempts: make([]uint64, call.Permanent+1),
		refusals: make([]uint64, len(causes)), denied: make([]uint64, len(causes)),
	}
}

func (c *counted) add(t *holdfast.Tally) {
	for class := call.OK; class.Valid(); class++ {
		c.calls[class] += t.Calls(class)
		c.attempts[class] += t.Attempts(class)
	}
	for _, cause := range causes {
		denied := t.Denied(cause)
		c.denied[cause] += denied
		c.refusals[cause] += t.Refusals(cause) + denied
	}
	c.retries += t.Retries()
	c.hedges += t.Hedges()
	c.hedgesWon += t.HedgesWon()
	c.failovers += t.Failovers()
	c.fallback += t.Fallbacks()
}

func (k *kitSeries) observeCalls(in *instruments, o metric.Observer) {
	type tally struct {
		name  string
		calls uint64
		*holdfast.Tally
	}
	var tallies []tally
	for name, t := range k.kit.Tallies() {
		n := uint64(0)
		for class := call.OK; class.Valid(); class++ {
			n += t.Calls(class)
		}
		tallies = append(tallies, tally{name, n, t})
	}
	// Of many new ones those that are called most have series of their own.
	slices.SortFunc(tallies, func(a, b tally) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.name, b.name))
	})
	all := map[string]*counted{}
	for _, t := range tallies {
		name := k.methods.of(t.name)
		if all[name] == nil {
			all[name] = newCounted()
		}
		all[name].add(t.Tally)
	}
	for name, c := range all {
		k.observeMethod(in, o, name, c)
	}
}

func (k *kitSeries) observeMethod(in *instruments, o metric.Observer, name string, c *counted) {
	each := func(in metric.Int64Observable, as string, n uint64, word string, always bool) {
		if n > 0 || always {
			o.ObserveInt64(in, int64(n), k.attrs("method", name, as, word))
		}
	}
	for class := call.OK; class.Valid(); class++ {
		each(in.calls, "result", c.calls[class], class.String(), class == call.OK)
		each(in.attempts, "result", c.attempts[class], class.String(), class == call.OK)
	}
	for _, cause := range causes {
		each(in.refusals, "cause", c.refusals[cause], cause.String(), false)
		each(in.denied, "cause", c.denied[cause], cause.String(), false)
	}
	each(in.retries, "", c.retries, "", true)
	each(in.hedges, "", c.hedges, "", false)
	each(in.hedgesWon, "", c.hedgesWon, "", c.hedges > 0)
	each(in.failovers, "", c.failovers, "", false)
	each(in.fallbacks, "", c.fallback, "", false)
}
