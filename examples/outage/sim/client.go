package sim

import (
	"fmt"
	"strconv"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Client is how a caller calls its dependency.
type Client struct {
	// Policy is in force whole: a layer that is nil is switched off. Its calls are
	// ReadOnly unless it says otherwise. Hedges and fallbacks are not played.
	Policy holdfast.Policy

	// Around, if not nil, is asked once for the whole call, with all its attempts
	// inside: the order that the kit does not have.
	Around *breaker.Config

	// Unaware says that the retries are made by hand, by someone who does not know
	// a probe from another attempt.
	Unaware bool

	// Kits is how many kits are nested in each other, each with the retries of the
	// policy and a budget of its own; the innermost has the other layers. Zero is one.
	Kits int

	// Share, if not nil, is where the callers share what their breakers know. The
	// store's answers are waited for in real time, and so the run has to keep time with
	// it: see Setup.Before.
	Share breaker.Store
}

// key names a caller's dependency.
const key = "dependency"

// kit is the state of a client.
type kit struct {
	run   *run
	inner *kit // what an attempt calls; nil is the dependency

	retry  *retry.Policy
	limits timeout.Limits
	safety call.Safety

	breakerConfig  *breaker.Config
	bulkheadConfig *bulkhead.Config
	unaware        bool
	fleet          *breaker.Fleet
	jitter         Chance // of cooldowns
	nested         bool   // inside another kit's attempt, and its policy heeds that

	made                    bool
	breaker, outerBreaker   *breaker.Breaker
	bulkhead, outerBulkhead *bulkhead.Bulkhead
	bucket                  *retry.Bucket
	queue                   []*request // what waits in the bulkheads' queues
	aroundConfig            *breaker.Config
	around                  *breaker.Breaker
}

// newKit checks the client's policy and returns its outermost kit.
func (r *run) newKit(c Client, caller int) (*kit, error) {
	p := c.Policy
	if _, err := holdfast.New(holdfast.Config{Default: whole(p)}); err != nil {
		return nil, err
	}
	innermost := &kit{run: r, safety: call.ReadOnly, unaware: c.Unaware, jitter: r.jitter}
	if p.Safety != call.SafetyUnknown {
		innermost.safety = p.Safety
	}
	if p.Retry != nil && !p.Retry.IsOff() {
		innermost.retry = p.Retry
	}
	if p.Timeout != nil && !p.Timeout.IsOff() {
		innermost.limits = *p.Timeout
	}
	if p.Breaker != nil && !p.Breaker.IsOff() {
		config := *p.Breaker
		if config.ProbeTimeout == 0 {
			config.ProbeTimeout = innermost.limits.Attempt
		}
		innermost.breakerConfig = r.watch(config)
	}
	if p.Bulkhead != nil && !p.Bulkhead.IsOff() {
		innermost.bulkheadConfig = p.Bulkhead
	}
	if c.Share != nil {
		// The fleet's goroutines draw too, each worker's from streams of its own: one
		// with the breaker's lock held, one with the fleet's.
		n := uint64(firstShared + 2*caller)
		innermost.jitter = stream(r.seed, n).Float64
		fleet, err := breaker.JoinAt(breaker.Sharing{Store: c.Share, Worker: "worker-" + strconv.Itoa(caller)},
			r.clock.instant(), stream(r.seed, n+1).Float64)
		if err != nil {
			return nil, err
		}
		innermost.fleet = fleet
	}
	outermost := innermost
	for range c.Kits - 1 {
		outermost.nested = innermost.retry != nil && !innermost.retry.EvenNested
		outermost = &kit{run: r, safety: innermost.safety, inner: outermost, retry: innermost.retry, unaware: c.Unaware}
	}
	if c.Around != nil {
		if err := c.Around.Check(); err != nil {
			return nil, fmt.Errorf("around: %w", err)
		}
		outermost.aroundConfig = r.watch(*c.Around)
	}
	return outermost, nil
}

// whole returns p with what it leaves out switched off, and not inherited.
func whole(p holdfast.Policy) holdfast.Policy {
	if p.Retry == nil {
		p.Retry = retry.Off()
	}
	if p.Breaker == nil {
		p.Breaker = breaker.Off()
	}
	if p.Timeout == nil {
		p.Timeout = timeout.Off()
	}
	if p.Bulkhead == nil {
		p.Bulkhead = bulkhead.Off()
	}
	return p
}

// watch has the run told of a breaker's transitions. Where callers share their state
// that may come from a goroutine of a fleet's.
func (r *run) watch(c breaker.Config) *breaker.Config {
	c.Hooks = breaker.Hooks{Transition: func(t breaker.Transition) {
		r.mu.Lock()
		defer r.mu.Unlock()
		at := r.elapsed()
		r.figures.Transitions = append(r.figures.Transitions, Transition{at, t.From, t.To, t.Reason})
	}}
	return &c
}

// begin makes the state at the first call, as a kit does. The configs were
// checked.
func (k *kit) begin() {
	if k.made {
		return
	}
	k.made = true
	now := k.run.clock.instant()
	if c := k.aroundConfig; c != nil {
		k.around, _ = breaker.NewAt(key, *c, now, k.run.jitter)
	}
	if c := k.breakerConfig; c != nil {
		k.breaker, _ = k.fleet.BreakerAt(key, *c, now, k.jitter)
		if c.Scope == breaker.TwoLevel {
			k.outerBreaker, _ = k.fleet.BreakerAt(key+"/target", *c, now, k.jitter)
		}
	}
	if c := k.bulkheadConfig; c != nil {
		k.bulkhead, _ = bulkhead.New(key, *c)
		if c.Scope == bulkhead.TwoLevel {
			k.outerBulkhead = k.bulkhead
			k.bulkhead, _ = bulkhead.New(key, c.ForMethod())
		}
	}
	if k.retry != nil {
		k.bucket = retry.NewBucketAt(k.retry.Budget, now)
	}
}
