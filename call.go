package holdfast

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// Call is one call under way. Adapters begin it with [Call.Begin]; it lives on
// their stack and belongs to one goroutine.
type Call struct {
	method *Method
	info   call.Info
	key    string // idempotency key made for the call, "" if none was
	keyed  bool   // it carries one, made or the caller's
	stream bool
	nested bool // inside an attempt of another call, which does the retrying
	hedged bool // its attempts may be hedged

	fallback *fallback.Policy
	retry    *retry.Policy
	limits   *timeout.Limits // never nil once begun

	*state
	bucket *retry.Bucket // the state's, or the call's own under an override

	end      mono.Instant // of Total; meaningful if limits.Total > 0
	now      mono.Instant // the last reading of the clock
	attempts int          // begun so far
	before   int          // of them, before the back-off began anew
	admitted bool         // the last attempt was, and not refused
	probe    bool         // and it was one
	raced    bool         // a hedge was sent: nothing is repeated any more
	delay    time.Duration
	last     call.Result // of the last attempt that was not refused as a repeat
	stopped  error       // why the call ended short of its attempts
}

// Terms is what an adapter knows of a call beside its name.
type Terms struct {
	Keyed    bool      // the request carries an idempotency key
	Stream   bool      // Total goes on to the first message, if that has a limit
	Override *Override // from a call option; nil if there is none
}

// Begin begins a call of m; c is new. info.Safety is what the wire declares. The
// returned context is the one to make attempts with. The error is a bad
// override's; nothing was admitted then.
func (c *Call) Begin(ctx context.Context, m *Method, info call.Info, terms Terms) (context.Context, error) {
	around := surroundingsOf(ctx)
	override := around.override
	if terms.Override != nil {
		override = terms.Override
	}
	info.Safety = m.safetyOf(info.Safety)
	if around.resource != "" {
		info.Resource = around.resource
	}
	c.method, c.info, c.keyed, c.stream = m, info, terms.Keyed, terms.Stream
	c.fallback, c.retry, c.limits, c.now = m.fallback.policy, m.retry.policy, m.timeout.policy, mono.Now()
	if override != nil {
		if err := c.override(override); err != nil {
			return ctx, err
		}
	}
	if c.limits == nil {
		c.limits = noLimits
	}
	c.nested = around.nested && c.retry != nil && !c.retry.EvenNested
	if c.retry != nil && c.retry.IdempotencyKey && !c.keyed && !c.info.Safety.Repeatable() {
		c.key, c.keyed = rand.Text(), true
	}
	c.end = c.now.Add(c.limits.Total)
	c.state = m.state(info, c.now)
	if c.bucket = c.state.bucket; c.bucket == nil && c.retry != nil && c.retry != m.retry.policy {
		c.bucket = retry.NewBucket(c.retry.Budget) // the policy has none to share
	}
	c.hedged = c.mayHedge()
	return around.enter(ctx, c.MayRetry()), nil
}

var noLimits = new(timeout.Limits)

func (c *Call) override(o *Override) error {
	if o.Safety != call.SafetyUnknown {
		c.info.Safety = o.Safety
	}
	if err := o.check(c.info.Safety).Err("holdfast"); err != nil {
		return err
	}
	if o.Fallback != nil {
		c.fallback = inForce(o.Fallback)
	}
	if o.Retry != nil {
		c.retry = inForce(o.Retry)
	}
	if o.Timeout != nil {
		c.limits = inForce(o.Timeout)
	}
	return nil
}

// inForce returns nil for a layer that is switched off.
func inForce[P any, PP interface {
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

// Attempt returns the number of the attempt under way, from 1.
func (c *Call) Attempt() int { return c.attempts }

// Key returns the idempotency key to send with each attempt; "" if the policy
// asks for none or the request has one already.
func (c *Call) Key() string { return c.key }

// MayRetry reports whether the call may get more than one attempt at all.
func (c *Call) MayRetry() bool { return c.retry != nil && c.retry.MaxAttempts != 1 && !c.nested }

// MayRepeat reports whether an attempt may be followed by another although the
// dependency may have acted on it. Where it is false, an attempt is repeated only
// if nothing of it was sent.
func (c *Call) MayRepeat() bool {
	return c.MayRetry() && (c.keyed || c.info.Safety.Repeatable())
}

// Result returns the result of the call: of its last attempt that reached the
// wire, or else the refusal of the first.
func (c *Call) Result() call.Result { return c.last }

// Stopped returns why the call ended short of its attempts, nil if it did not.
func (c *Call) Stopped() *retry.StoppedError {
	if c.stopped == nil {
		return nil
	}
	return &retry.StoppedError{Reason: c.stopped, Attempts: c.attempts, Last: c.last.Err}
}

// Err returns the error of the call, nil for an OK and where the answer is a
// response of the dependency's.
func (c *Call) Err() error {
	if c.stopped != nil && c.last.Err != nil {
		return c.Stopped()
	}
	return c.last.Err
}

// left returns how long the call may go on, retry.NoLimit if nothing bounds it.
// Floor is left out of it: with less than that no attempt begins.
func (c *Call) left(ctx context.Context) time.Duration {
	left := retry.NoLimit
	if c.limits.Total > 0 {
		left = c.end.Sub(c.now)
	}
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, mono.Of(deadline).Sub(c.now))
	}
	if left == retry.NoLimit {
		return left
	}
	return left - c.limits.Floor
}

// callerDone reports whether the caller's context is done. Its deadline counts from
// the moment it has passed, which others may notice before its timer runs.
func callerDone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && mono.Now() >= mono.Of(deadline)
}

// callerEnd is the result of a call whose caller's context is done.
func callerEnd(ctx context.Context) call.Result {
	err := timeout.Caller(ctx)
	if err == nil {
		err = context.DeadlineExceeded // passed, though its timer has yet to run
	}
	if errors.Is(err, context.Canceled) {
		return call.Result{Class: call.Canceled, Err: err}
	}
	return call.Result{Class: call.TimedOut, Err: err}
}

// bound returns the nearest limit of an attempt that begins now.
func (c *Call) bound(a *Attempt) timeout.Bound {
	b := c.total()
	if !a.ticket.Probe() {
		return b.Nearer("Attempt", c.limits.Attempt)
	}
	b = b.Nearer("ProbeTimeout", a.ticket.ProbeLimit())
	if c.method.breaker.policy.ProbeTimeout == 0 {
		// It was not set, and so is the limit of an attempt: of this method's.
		b = b.Nearer("Attempt", c.limits.Attempt)
	}
	// What an override or the attempts before have left of the time is this
	// call's own affair.
	own := c.limits != c.method.timeout.policy
	a.hasty = b.Limit == "Total" && (own || c.attempts > 1) || b.Limit == "Attempt" && own
	return b
}

// total returns what is left of Total.
func (c *Call) total() timeout.Bound {
	if c.limits.Total <= 0 {
		return timeout.Bound{}
	}
	// It is at least a nanosecond: Next saw to it.
	return timeout.Bound{Limit: "Total", Whole: c.limits.Total, Left: max(c.end.Sub(c.now), 1)}
}

// firstMessage returns the limit on the first message of an attempt that begins
// now.
func (c *Call) firstMessage() timeout.Bound {
	if c.limits.FirstMessage <= 0 {
		return timeout.Bound{}
	}
	var b timeout.Bound
	if c.stream {
		b = c.total()
	}
	return b.Nearer("FirstMessage", c.limits.FirstMessage)
}

// refused is the result of an attempt that the kit turned away.
func refused(err error) call.Result {
	return call.Result{Class: call.Refused, Err: err, NotSent: true}
}

// turnedAway is the result of an attempt that ended in the bulkhead's queue.
func turnedAway(ctx context.Context, err error) call.Result {
	if ctx.Err() == nil {
		return refused(err)
	}
	end := callerEnd(ctx)
	end.NotSent = true
	return end
}

// Classify lets the policy amend the adapter's verdict.
func (c *Call) Classify(ctx context.Context, res call.Result) call.Result {
	if c.method.classify != nil {
		err := res.Err
		if res = c.method.classify(ctx, c.info, res); res.Err == nil {
			res.Err = err // amended is the verdict, not what happened
		}
	}
	if !res.Class.Valid() {
		res.Class = call.ServerFault
	}
	return res
}

// Fallback ends the call: with the fallback's answer if the policy has one that
// applies, and else with the call's own error.
func (c *Call) Fallback(ctx context.Context) (answer any, err error) {
	err = c.Err()
	if c.fallback == nil || !fallback.Applies(c.info.Safety, c.last.Class) || ctx.Err() != nil {
		return nil, err
	}
	answer, failure := c.fallback.Answer(ctx, fallback.Failure{
		Info: c.info, Class: c.last.Class, Err: err, Code: c.last.Code, Attempts: c.attempts,
	})
	switch {
	case failure != nil:
		return nil, c.FailFallback(failure)
	case answer == nil: // there is none after all
		return nil, err
	}
	return answer, nil
}

// FailFallback ends the call whose fallback has failed, and returns its error. An
// HTTP response stands, and says so by [Call.Stopped]: the error is nil then.
func (c *Call) FailFallback(failure error) error {
	if err := c.Err(); err != nil {
		return &fallback.Error{Primary: err, Fallback: failure}
	}
	c.stopped = &fallback.Error{Primary: c.stopped, Fallback: failure}
	return nil
}

// TimeLeft returns how long the call may go on, retry.NoLimit if nothing bounds
// it.
func (c *Call) TimeLeft(ctx context.Context) time.Duration {
	c.now = mono.Now()
	return max(c.left(ctx), 0)
}
