package holdfast

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Policy says how the calls of a method are protected.
//
// A nil layer is inherited: from the service or the broader pattern, from
// Config.Default, and at last from [Standard]. A layer that is set replaces the
// inherited one whole; its Off value (retry.Off(), breaker.Off(), ...) switches
// it off.
type Policy struct {
	// Safety says what repeating the call may do. In the entry of a single
	// method it outranks what the wire declares; elsewhere it holds for the
	// methods of which the wire declares nothing. What declares it is the method of
	// an HTTP request, the idempotency_level of a gRPC method, and the call.Info
	// given to [Do]. Zero inherits, and a call of which nothing is known is Unsafe:
	// it gets one attempt, and another only if nothing of that was sent.
	Safety call.Safety

	Fallback *fallback.Policy // what a read that has failed is answered with
	Retry    *retry.Policy    // which failures are repeated, after what wait and how often
	Breaker  *breaker.Config  // when the dependency is left alone, and for how long
	Timeout  *timeout.Limits  // how long a call and its attempts may take
	Bulkhead *bulkhead.Config // how many attempts may run at once

	// Classify amends the adapter's verdict on an attempt. It is given the
	// caller's context. If it panics the attempt counts as a failure, nothing
	// is leaked, and the panic goes on. A result with an invalid Class counts
	// as ServerFault. Nil inherits; with nothing to inherit the verdict stands.
	Classify func(context.Context, call.Info, call.Result) call.Result
}

// Config is the configuration of a [Kit]. The zero Config is useful: it runs the
// standard policy.
type Config struct {
	// Name names the kit in metrics, spans, logs and on the operations page. Empty
	// is "holdfast".
	Name string

	// Default is the policy of every method without an entry of its own, and
	// what entries inherit from.
	Default Policy

	// Methods holds the policies of single methods and of groups of them. The
	// keys are gRPC names ("/pkg.Service/Method", "pkg.Service") or patterns in
	// the syntax of http.ServeMux ("GET /items/{id}", "api.example.com/"); for
	// Do, any name. The adapter refuses a key that is no name for its wire.
	Methods map[string]Policy

	// Shared makes the kit's breakers share their state with those of the other
	// processes that use the same Store and the same Space, which is Name if it
	// is empty. New waits for the store for a moment to learn what is open, and
	// goes on without it if it does not answer. A policy's Breaker.LocalOnly
	// keeps its breakers out of it. Nil means that this process is by itself.
	Shared *breaker.Sharing

	// Hooks are told of what the calls do. Kit.Attach adds others.
	Hooks Hooks
}

// Standard returns the policy that everything inherits from in the end:
//
//   - Total 30 s, Attempt 10 s, Idle 30 s for HTTP bodies of known length;
//   - 3 attempts for ReadOnly and Idempotent calls, full jitter on 50 ms
//     doubling to 5 s, a budget of 20 % of successes and 10 a second;
//   - a breaker per target: at least 10 attempts of the last 20 s, half of them
//     failed, opens for 5 s doubling to 30 s with 20 % jitter; one probe at a
//     time, three successes in a row close;
//   - a bulkhead of 1000 per target without a queue;
//   - no fallback.
func Standard() Policy {
	return Policy{
		Fallback: fallback.Off(),
		Retry: &retry.Policy{
			MaxAttempts: 3,
			Backoff:     retry.Backoff{Base: 50 * time.Millisecond, Factor: 2, Cap: 5 * time.Second},
			Budget:      retry.Budget{Share: 0.2, PerSecond: 10, Cap: 100},
		},
		Breaker: &breaker.Config{
			Window:      breaker.Window{Span: 20 * time.Second, Buckets: 10},
			MinCalls:    10,
			FailureRate: 0.5,
			Cooldown:    5 * time.Second, MaxCooldown: 30 * time.Second,
			CooldownFactor: 2, Jitter: 0.2,
			Probes: 1, ProbeSuccesses: 3,
		},
		Timeout: &timeout.Limits{
			Total: 30 * time.Second, Attempt: 10 * time.Second,
			Idle: 30 * time.Second, IdleKnownLength: true,
		},
		Bulkhead: &bulkhead.Config{Limit: 1000},
	}
}

// standard is what is inherited from in the end; nobody writes to it.
var standard = Standard()

// clone copies every layer, so that later changes to the caller's values, or to
// another kit's, do not reach this one.
func (p Policy) clone() Policy {
	if p.Fallback = copied(p.Fallback); p.Fallback != nil {
		p.Fallback.Stale = copied(p.Fallback.Stale)
	}
	p.Retry = copied(p.Retry)
	p.Breaker = copied(p.Breaker)
	p.Timeout = copied(p.Timeout)
	p.Bulkhead = copied(p.Bulkhead)
	return p
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// check returns the faults that a policy has by itself.
func (p Policy) check() check.Faults {
	var faults check.Faults
	if !p.Safety.Valid() {
		faults.Add("Safety", p.Safety, "is no safety")
	}
	if p.Fallback != nil {
		faults.In("Fallback", check.Of(p.Fallback.Check()))
	}
	if p.Retry != nil {
		faults.In("Retry", check.Of(p.Retry.Check()))
	}
	if p.Breaker != nil {
		faults.In("Breaker", check.Of(p.Breaker.Check()))
	}
	if p.Timeout != nil {
		faults.In("Timeout", check.Of(p.Timeout.Check()))
	}
	if p.Bulkhead != nil {
		faults.In("Bulkhead", check.Of(p.Bulkhead.Check()))
	}
	return faults
}

func (c Config) clone() Config {
	c.Default = c.Default.clone()
	c.Shared = copied(c.Shared)
	methods := make(map[string]Policy, len(c.Methods))
	for name, p := range c.Methods {
		methods[name] = p.clone()
	}
	c.Methods = methods
	return c
}

// check returns what is wrong with the layers by themselves. What depends on how
// names nest is checked when an adapter binds the kit.
func (c Config) check() check.Faults {
	var faults check.Faults
	faults.In("Default", c.Default.check())
	if c.Shared != nil {
		faults.In("Shared", check.Of(c.Shared.Check()))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Methods)) {
		faults.In(entryField(name), c.Methods[name].check())
	}
	return faults
}
