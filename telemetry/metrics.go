package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast"
)

// Metrics says how kits are measured. The zero Metrics is useful.
type Metrics struct {
	// Provider is where the metrics go. Nil is the global one. Until the program sets
	// one, and for ever by one of package noop, nothing is counted and calls pay
	// nothing for it; one that is set later counts from a second after at most.
	Provider metric.MeterProvider

	// Durations asks for the histograms of calls, of waits in bulkheads' queues and
	// of the age of stale answers. A call pays what the SDK takes to record one
	// value, and no allocation.
	Durations bool

	// AttemptDurations asks for the histogram of attempts, which costs each
	// attempt as much.
	AttemptDurations bool

	// MaxKeys is how many breakers, bulkheads and budgets of a kit have series of
	// their own; those beyond are reported together as "other". Breakers in trouble
	// come first; see the package's documentation for their counters. Zero is 300,
	// which the SDK's own limit of 2,000 series for an instrument leaves room for.
	MaxKeys int

	// MaxMethods is how many methods of a kit have series of their own, the first
	// ones and of those the ones called most; the calls of further ones are reported
	// together as "other". Zero is 150, which leaves room as above: there are 11 causes
	// of refusals.
	MaxMethods int
}

// What the zero fields of Metrics stand for.
const (
	defaultMaxKeys    = 300
	defaultMaxMethods = 150
)

// Register measures kits until stop is called. Any number of registrations may share
// a provider; a kit is to be in one of them only, or it is counted twice. Kits of
// the same name are told apart by nothing: give each a Config.Name.
//
// An error says that an option is bad, a kit is nil, or an instrument could not be
// made; stop is nil then.
func (m Metrics) Register(kits ...*holdfast.Kit) (stop func(), err error) {
	for _, most := range []struct {
		field string
		n     *int
		zero  int
	}{{"MaxKeys", &m.MaxKeys, defaultMaxKeys}, {"MaxMethods", &m.MaxMethods, defaultMaxMethods}} {
		switch {
		case *most.n < 0:
			return nil, fmt.Errorf("telemetry: Metrics.%s = %d: must not be negative; zero is %d", most.field, *most.n, most.zero)
		case *most.n == 0:
			*most.n = most.zero
		}
	}
	if slices.Contains(kits, nil) {
		return nil, errNilKit
	}
	if m.Provider == nil {
		m.Provider = otel.GetMeterProvider()
	}
	meter := m.Provider.Meter(ScopeName)
	in, err := newInstruments(meter)
	if err != nil {
		return nil, err
	}
	c := &collector{instruments: in, maxKeys: m.MaxKeys}
	for _, k := range kits {
		k.CountWhen(func() bool { return readable(m.Provider) })
		c.kits = append(c.kits, &kitSeries{kit: k, maxKeys: m.MaxKeys, methods: newMethodNames(m.MaxMethods), ledger: ledger{most: m.MaxKeys}})
	}
	callback, err := meter.RegisterCallback(c.collect, in.all()...)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	undo := []func(){func() {
		if err := callback.Unregister(); err != nil {
			otel.Handle(err)
		}
	}}
	stop = sync.OnceFunc(func() {
		for _, f := range undo {
			f()
		}
	})
	if !m.Durations && !m.AttemptDurations {
		return stop, nil
	}
	durations, err := newDurations(meter)
	if err != nil {
		stop()
		return nil, err
	}
	for i, k := range kits {
		undo = append(undo, k.Attach(durations.hooks(k, m, c.kits[i].methods)))
	}
	return stop, nil
}

var errNilKit = errors.New("telemetry: a kit is nil; make one with holdfast.New")

// instruments are those that are read at collection time.
type instruments struct {
	state, breakers                    metric.Int64ObservableUpDownCounter
	opens, probes, breakerRefusals     metric.Int64ObservableCounter
	shadowState                        metric.Int64ObservableUpDownCounter
	shadowOpens, shadowProbes          metric.Int64ObservableCounter
	shadowRefusals                     metric.Int64ObservableCounter
	calls, attempts, refusals          metric.Int64ObservableCounter
	retries, denied, hedges, hedgesWon metric.Int64ObservableCounter
	failovers, fallbacks               metric.Int64ObservableCounter
	inUse, waiting, limit              metric.Int64ObservableUpDownCounter
	tokens                             metric.Float64ObservableUpDownCounter
	storeUp                            metric.Int64ObservableUpDownCounter
	storeFailures, storeProbes         metric.Int64ObservableCounter
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	in := &instruments{}
	var errs []error
	counter := func(to *metric.Int64ObservableCounter, name, unit, what string) {
		i, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		*to, errs = i, append(errs, err)
	}
	upDown := func(to *metric.Int64ObservableUpDownCounter, name, unit, what string) {
		i, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		*to, errs = i, append(errs, err)
	}
	upDown(&in.state, "holdfast.breaker.state", "{breaker}", "1 for the state that the next call would find, 0 for the others.")
	upDown(&in.breakers, "holdfast.breakers", "{breaker}", "Breakers in a state.")
	counter(&in.opens, "holdfast.breaker.opens", "{opening}", "Openings by a rule or a probe.")
	counter(&in.probes, "holdfast.breaker.probes", "{probe}", "Ends of probes by their outcome.")
	counter(&in.breakerRefusals, "holdfast.breaker.refusals", "{attempt}", "Attempts that a breaker refused.")
	upDown(&in.shadowState, "holdfast.shadow.state", "{breaker}", "Of breakers that refuse nothing: 1 for their state, 0 for the others.")
	counter(&in.shadowOpens, "holdfast.shadow.opens", "{opening}", "Openings that cut nobody off.")
	counter(&in.shadowProbes, "holdfast.shadow.probes", "{probe}", "Ends of what would have been probes by their outcome.")
	counter(&in.shadowRefusals, "holdfast.shadow.refusals", "{attempt}", "Attempts that a breaker would have refused.")
	counter(&in.calls, "holdfast.calls", "{call}", "Calls that have returned, by the class of their end.")
	counter(&in.attempts, "holdfast.attempts", "{attempt}", "Attempts that have ended, by their class.")
	counter(&in.refusals, "holdfast.refusals", "{attempt}", "Calls that the kit turned away, and repeats that it did not make.")
	counter(&in.retries, "holdfast.retry.sent", "{attempt}", "Repeats that were sent.")
	counter(&in.denied, "holdfast.retry.denied", "{attempt}", "Repeats that were due and not made.")
	counter(&in.hedges, "holdfast.hedge.sent", "{attempt}", "Hedges that were sent.")
	counter(&in.hedgesWon, "holdfast.hedge.won", "{attempt}", "Hedges that had the answer.")
	counter(&in.failovers, "holdfast.failover.sent", "{attempt}", "Attempts at another upstream than the one before.")
	counter(&in.fallbacks, "holdfast.fallback.served", "{call}", "Calls that got a fallback's answer.")
	upDown(&in.inUse, "holdfast.bulkhead.in_use", "{permit}", "Permits that are out.")
	upDown(&in.waiting, "holdfast.bulkhead.waiting", "{attempt}", "Attempts in the queue.")
	upDown(&in.limit, "holdfast.bulkhead.limit", "{permit}", "Permits that there are.")
	upDown(&in.storeUp, "holdfast.store.answering", "{kit}", "1 while the shared store answers, 0 while breakers go by their own knowledge.")
	counter(&in.storeFailures, "holdfast.store.failures", "{command}", "Commands to the shared store that failed.")
	counter(&in.storeProbes, "holdfast.store.probes", "{probe}", "What became of those who asked the shared store for a probe.")
	tokens, err := meter.Float64ObservableUpDownCounter("holdfast.budget.tokens", metric.WithUnit("{attempt}"),
		metric.WithDescription("Repeats that the budget allows now."))
	in.tokens = tokens
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return in, nil
}

func (in *instruments) all() []metric.Observable {
	return []metric.Observable{
		in.state, in.breakers, in.opens, in.probes, in.breakerRefusals,
		in.shadowState, in.shadowOpens, in.shadowProbes, in.shadowRefusals, in.calls, in.attempts, in.refusals, in.retries, in.denied,
		in.hedges, in.hedgesWon, in.failovers, in.fallbacks, in.inUse, in.waiting, in.limit, in.tokens,
		in.storeUp, in.storeFailures, in.storeProbes,
	}
}

// collector reads the kits' counters when somebody collects.
type collector struct {
	*instruments
	maxKeys int
	mu      sync.Mutex // several readers may collect at once
	kits    []*kitSeries
}

func (c *collector) collect(_ context.Context, o metric.Observer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kits {
		k.observe(c.instruments, o)
	}
	return nil
}
