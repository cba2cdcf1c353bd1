package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// member is a kit that takes part in the soak.
type member struct {
	name   string
	wire   string // "http", "grpc" or "do"
	stale  fallback.Store
	shared *breaker.Sharing // nil if its breakers are its own
	kit    *holdfast.Kit

	admitted atomic.Int64 // attempts of the methods that are booked
	forced   string       // the breaker that may be forced open for the whole fleet, "" if none is
}

const (
	service = "/chaos.Store/"
	books   = "/chaos.Books/"
)

// booked reports whether a method, or the breaker of that name, is one whose
// breaker never opens and forgets nothing, so that it has a count of all the tickets
// that have ended: see [member.unbooked].
func booked(name string) bool { return strings.Contains(name, "Books") }

// ledgerBreaker is the breaker of the booked methods. It would open if nothing
// but failures had ended, and 30,000 of them.
func ledgerBreaker(scope breaker.Scope) *breaker.Config {
	return &breaker.Config{Window: breaker.Window{Span: 24 * time.Hour}, FailureRate: 1, MinCalls: 30_000, Scope: scope, LocalOnly: true}
}

// bookedScope is where the tickets of the booked methods come from: one ticket for
// each attempt, or two.
func (m *member) bookedScope() (breaker.Scope, int64) {
	if m.wire == "grpc" {
		return breaker.TwoLevel, 2
	}
	return breaker.PerTarget, 1
}

// unbooked returns what is wrong with the tickets of the booked methods: each was to
// end once, as a result or neutral.
func (m *member) unbooked() (all []string) {
	_, each := m.bookedScope()
	ended := int64(0)
	for name, b := range m.kit.Breakers() {
		if booked(name) {
			c := b.Counts()
			ended += int64(c.Results) + int64(c.Totals.Neutral)
			if c.Totals.Opens != 0 {
				all = append(all, m.name+": "+name+" has opened")
			}
		}
	}
	if admitted := m.admitted.Load() * each; admitted != ended || admitted == 0 {
		all = append(all, fmt.Sprintf("%s: %d tickets given out, %d booked", m.name, admitted, ended))
	}
	return all
}

// policy draws one. It is for a short life: all times are small.
func (m *member) policy(draw *rand.Rand) holdfast.Policy {
	ms := func(some ...int) time.Duration { return time.Duration(pick(draw, some...)) * time.Millisecond }
	p := holdfast.Policy{
		Retry: &retry.Policy{
			MaxAttempts:    1 + draw.IntN(4),
			Backoff:        retry.Backoff{Base: ms(1, 5, 20), Cap: ms(50, 100)},
			Budget:         pick(draw, retry.Budget{}, retry.NoBudget()),
			Hedge:          pick(draw, retry.Hedge{}, retry.Hedge{}, retry.Hedge{Delay: ms(1, 20)}, retry.Hedge{Percentile: 0.9, Extra: 2}),
			IdempotencyKey: draw.IntN(3) == 0,
		},
		Breaker: &breaker.Config{
			Window: pick(draw, breaker.Window{Calls: 20}, breaker.Window{Span: 2 * time.Second}), MinCalls: 5, FailureRate: pick(draw, 0.5, 0.8),
			Cooldown: ms(50, 200), MaxCooldown: 500 * time.Millisecond, Probes: 1 + draw.IntN(3), ProbeSuccesses: 1 + draw.IntN(3), ProbeTimeout: ms(100, 400),
			Stall: breaker.Stall{After: ms(200, 400), Calls: 1 + draw.IntN(8)},
			Scope: pick(draw, breaker.PerTarget, breaker.PerMethod, breaker.TwoLevel),
		},
		Timeout: &timeout.Limits{
			Total: ms(1000, 3000), Attempt: ms(200, 500), FirstMessage: ms(0, 0, 300), Idle: ms(0, 100, 500), Floor: ms(0, 2),
		},
		Bulkhead: &bulkhead.Config{Limit: pick(draw, 1, 2, 4, 20), Queue: draw.IntN(10), MaxWait: ms(0, 20)},
		Fallback: pick(draw, nil, nil, m.computed()),
	}
	if p.Bulkhead.Queue == 0 {
		p.Bulkhead.MaxWait = 0
	}
	if p.Retry.MaxAttempts == 1 {
		p.Retry.Hedge = retry.Hedge{}
	}
	p.Retry.Hedge.Extra = min(p.Retry.Hedge.Extra, p.Retry.MaxAttempts-1)
	switch draw.IntN(12) {
	case 0:
		p.Retry = retry.Off()
	case 1:
		p.Breaker = breaker.Off()
	case 2:
		p.Bulkhead = bulkhead.Off()
	}
	return p
}

const computedText = "computed"

var errNoAnswer = errors.New("chaos: there is no computed answer")

// computed is a fallback that answers some, has nothing for others and fails for
// the rest. Writes inherit it with all else, and it must not answer them.
func (m *member) computed() *fallback.Policy {
	answers := map[string]func(context.Context, fallback.Failure) (any, error){
		"http": httpmw.StaticAnswer(http.StatusOK, nil, []byte(computedText)),
		"grpc": fallback.Static(wrapperspb.String(computedText)),
		"do":   fallback.Static(computedText),
	}
	answer, asked := answers[m.wire], new(atomic.Uint64)
	return &fallback.Policy{Answer: func(ctx context.Context, f fallback.Failure) (any, error) {
		switch asked.Add(1) % 3 {
		case 0:
			return nil, nil
		case 1:
			return nil, errNoAnswer
		}
		return answer(ctx, f)
	}}
}

// config draws a table. It says what each RPC does, what is kept and what is booked.
func (m *member) config(draw *rand.Rand, l *ledger) holdfast.Config {
	c := holdfast.Config{Name: m.name, Default: m.policy(draw), Hooks: l.hooks(m), Shared: m.shared}
	stale := &fallback.Policy{Stale: &fallback.Stale{Store: m.stale, Identity: fallback.SharedByAll, MaxStale: time.Minute}}
	ledgers := m.policy(draw)
	scope, _ := m.bookedScope()
	// Nobody but the breaker turns an attempt away, which it never does, and none is
	// given up after its admission, as a hedge without a token is.
	ledgers.Breaker, ledgers.Bulkhead = ledgerBreaker(scope), bulkhead.Off()
	if !ledgers.Retry.IsOff() {
		ledgers.Retry.Budget = retry.NoBudget()
	}
	ledgers.Fallback = nil // what Default has
	own := m.policy(draw)
	switch m.wire {
	case "http":
		own.Fallback = nil // for a write it would be refused
		c.Methods = map[string]holdfast.Policy{"/Books/": ledgers, "GET /kept/{n}": {Fallback: stale}, "PUT /{$}": own}
	case "grpc":
		own.Safety = call.ReadOnly
		c.Methods = map[string]holdfast.Policy{"chaos.Books": ledgers, service + "Read": own, service + "Keep": {Safety: call.ReadOnly, Fallback: stale}}
		for method, safety := range map[string]call.Safety{
			"Read": call.ReadOnly, "Feed": call.ReadOnly, "Chat": call.ReadOnly, "Put": call.Idempotent, "Upload": call.Idempotent,
		} {
			for _, of := range []string{service, books} {
				p := c.Methods[of+method]
				p.Safety = safety
				c.Methods[of+method] = p
			}
		}
	case "do":
		c.Methods = map[string]holdfast.Policy{"Books": ledgers, "own": own}
	}
	return c
}

// recovered is what the kit is given in the end: with it nothing may stay shut.
func (m *member) recovered(c holdfast.Config) holdfast.Config {
	c.Default = holdfast.Policy{
		Breaker: &breaker.Config{Cooldown: 100 * time.Millisecond, MaxCooldown: 200 * time.Millisecond, ProbeTimeout: time.Second},
		Timeout: &timeout.Limits{Total: 3 * time.Second, Attempt: time.Second},
	}
	c.Methods = maps.Clone(c.Methods)
	for name, p := range c.Methods {
		if booked(name) {
			c.Methods[name] = holdfast.Policy{Safety: p.Safety, Breaker: p.Breaker, Bulkhead: p.Bulkhead}
		} else {
			c.Methods[name] = holdfast.Policy{Safety: p.Safety}
		}
	}
	return c
}
