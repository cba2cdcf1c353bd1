package holdfast

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Call is for the kit's own adapters: one call under way. They begin it with
// [Call.Begin]; it lives on their stack and belongs to one goroutine.
type Call struct {
	method *Method
	hooks  *Hooks // as they were when it began; never nil
	info   call.Info
	key    string // idempotency key made for the call, "" if none was
	keyed  bool   // it carries one, made or the caller's
	stream bool
	nested bool // inside an attempt of another call, which does the retrying
	hedged bool // its attempts may be hedged
	passes bool // its context is the one it was begun with

	*inForce       // the method's, or the call's own under an override
	walk     *walk // through several upstreams; nil if there is one
	*state
	bucket *retry.Bucket // the state's, or the call's own under an override
	room   *UnaryRoom    // for the context of the next attempt; nil if there is none
	tally  *Tally        // nil if nobody counts
	told   *callTold     // nil if no hook waits for the call's end

	deadline mono.Instant // the caller's; meaningful if bounded
	bounded  bool         // the caller has one
	began    mono.Instant // Total counts from here
	now      mono.Instant // the last reading of the clock
	attempts int          // begun so far
	before   int          // of them, before the back-off began anew
	admitted bool         // the last attempt was, and not refused
	probe    bool         // and it was one
	sent     bool         // an attempt before the last may have reached the dependency
	raced    bool         // a hedge was sent: nothing is repeated any more
	counted  bool         // in the tally
	answered bool         // by a fallback
	delay    time.Duration
	last     call.Result // of the last attempt that was not refused as a repeat; while one runs, what a panic in it comes to
	stopped  error       // why the call ended short of its attempts

	stale func(context.Context, call.Class) (any, time.Duration, error) // reads the stale answer; nil if there is no cache
	take  func(answer any, failure error) error                         // takes a fallback's answer; nil if any is taken
	stand stand                                                         // what the fallback has answered with
}

// Terms is for the kit's own adapters: what they know of a call beside its name.
type Terms struct {
	Keyed    bool      // the request carries an idempotency key
	Keyless  bool      // there is nothing that could carry one, so that the kit makes none
	Stream   bool      // Total goes on to the first message, if that has a limit
	Override *Override // from a call option; nil if there is none

	// Room is for the call's context, UnaryRoom for that of the first attempt too; nil
	// if there is none.
	Room      *Room
	UnaryRoom *UnaryRoom

	// Upstreams are those that can answer the call, in order of preference; nil is
	// info.Target alone. Where a failure may be repeated, or its upstream refuses, the
	// next has its turn without a wait; what the retry policy counts, waits between
	// and takes a token for are walks along the list.
	Upstreams *Upstreams
}

// Begin begins a call of m; c is new. info.Safety is what the wire declares. The
// returned context is the one to make attempts with. The error is a bad
// override's; nothing was admitted then.
func (c *Call) Begin(ctx context.Context, m *Method, info call.Info, terms Terms) (context.Context, error) {
	c.info = info
	return c.begin(ctx, m, &terms)
}

// begin is Begin once c.info is there: so Begin can be a part of its caller, in whose
// frame c is, and a word written there needs no look at the collector. To copy info or
// terms once more costs as much as what is done with them.
func (c *Call) begin(ctx context.Context, m *Method, terms *Terms) (context.Context, error) {
	c.method, c.hooks, c.keyed, c.stream = m, m.hooks.Load(), terms.Keyed, terms.Stream
	c.info.Safety = m.safetyOf(c.info.Safety)
	c.inForce, c.now = &m.inForce, mono.Now()
	c.began = c.now
	around := surroundingsOf(ctx)
	if around != &nowhere || terms.Override != nil || terms.Upstreams != nil {
		if err := c.adapt(around, terms); err != nil {
			return ctx, err
		}
	}
	if c.retry != nil && c.retry.IdempotencyKey && !c.keyed && !terms.Keyless && !c.info.Safety.Repeatable() {
		c.key, c.keyed = rand.Text(), true
	}
	c.state = m.state(&c.info, c.now)
	if c.bucket = c.state.bucket; c.bucket == nil && c.inForce != &m.inForce && c.retry != nil && c.retry != m.inForce.retry {
		c.bucket = retry.NewBucketAt(c.retry.Budget, c.now) // the policy has none to share
	}
	if c.hedged = c.hedges && c.mayHedge(); !c.hedged {
		c.room = terms.UnaryRoom // where attempts run beside each other none is the first
	}
	if all := m.counting.all.Load(); all != nil {
		c.count(all)
	}
	c.passes = true
	if retries := c.MayRetry(); around.override != nil || retries && !around.nested {
		ctx, c.passes = around.enter(ctx, retries, terms.ofCall())
	}
	if hook := c.hooks.Call; hook != nil {
		ctx, c.passes = c.beginTold(ctx, hook), false
	}
	if deadline, ok := ctx.Deadline(); ok {
		c.deadline, c.bounded = mono.Of(deadline), true
	}
	return ctx, nil
}

// adapt makes the call what its surroundings and its terms ask for.
func (c *Call) adapt(around *surroundings, terms *Terms) error {
	if around.resource != "" {
		c.info.Resource = around.resource
	}
	if terms.Upstreams != nil {
		c.walk = newWalk(terms.Upstreams, c.info.Resource)
		c.info = c.walk.here(c.info)
	}
	override := around.override
	if terms.Override != nil {
		override = terms.Override
	}
	if override != nil {
		if err := c.override(override); err != nil {
			return err
		}
	}
	c.nested = around.nested && c.retry != nil && !c.retry.EvenNested
	return nil
}

func (c *Call) override(o *Override) error {
	if o.Safety != call.SafetyUnknown {
		c.info.Safety = o.Safety
	}
	if err := o.check(c.info.Safety).Err("holdfast"); err != nil {
		return err
	}
	own := *c.inForce
	if o.Fallback != nil {
		own.fallback = orNone(o.Fallback)
	}
	if o.Retry != nil {
		own.retry = orNone(o.Retry)
	}
	if o.Timeout != nil {
		own.limits = orNone(o.Timeout)
	}
	c.inForce = own.complete()
	return nil
}

// inForce is what calls live by that an override may replace.
type inForce struct {
	fallback *fallback.Policy
	retry    *retry.Policy
	limits   *timeout.Limits // never nil once complete

	// What follows from them.
	retries bool // there may be a second attempt
	hedges  bool // and it may be sent while the first one runs
}

// noLimits stands for limits that are switched off.
var noLimits = new(timeout.Limits)

// complete works out what follows from the policies.
func (f *inForce) complete() *inForce {
	if f.limits == nil {
		f.limits = noLimits
	}
	f.retries = f.retry != nil && f.retry.MaxAttempts != 1
	f.hedges = f.retries && f.retry.Hedge.Sends()
	return f
}

// orNone returns nil for a layer that is switched off.
func orNone[P any, PP interface {
	*P
	IsOff() bool
}](p *P) *P {
	if PP(p).IsOff() {
		return nil
	}
	return p
}

// Info returns the call's name and its safety, all that is known of it taken
// together.
func (c *Call) Info() call.Info { return c.info }

// Probing reports whether the attempt under way is a half-open breaker's probe.
func (c *Call) Probing() bool { return c.admitted && c.probe }

// Attempt returns the number of the attempt under way, from 1; a hop to another
// upstream is one.
func (c *Call) Attempt() int {
	if c.walk != nil {
		return c.walk.n
	}
	return c.attempts
}

// Key returns the idempotency key to send with each attempt; "" if the policy
// asks for none or the request has one already.
func (c *Call) Key() string { return c.key }

// MayRetry reports whether the call may get more than one attempt at all.
func (c *Call) MayRetry() bool {
	return c.retries && !c.nested || c.walk != nil && len(c.walk.list) > 1
}

// MayRetry reports whether calls of the method may get more than one attempt at one
// target.
func (m *Method) MayRetry() bool { return m.retry.policy != nil && m.retry.policy.MaxAttempts != 1 }

// MayRepeat reports whether an attempt may be followed by another although the
// dependency may have acted on it. Where it is false, an attempt is repeated only
// if nothing of it was sent.
func (c *Call) MayRepeat() bool {
	return c.MayRetry() && (c.keyed || c.info.Safety.Repeatable())
}

// OnlyUnsent reports whether an attempt may be followed by another if nothing of it was
// sent, and only then. Its context is never the caller's own: see [Attempt.Limits].
func (c *Call) OnlyUnsent() bool { return c.MayRetry() && !c.MayRepeat() }
