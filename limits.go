package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/deadline"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// left returns how long the call may go on, retry.NoLimit if nothing bounds it.
// Floor is left out of it: with less than that no attempt begins.
func (c *Call) left() time.Duration {
	left := c.callersLeft(c.now)
	if c.limits.Total > 0 {
		left = min(left, c.totalLeft(c.now))
	}
	if left == retry.NoLimit {
		return left
	}
	return left - c.limits.Floor
}

// totalLeft returns what is left of Total at now.
func (c *Call) totalLeft(now mono.Instant) time.Duration {
	return c.limits.Total - now.Sub(c.began)
}

// callersLeft returns how long it is from now to the caller's own deadline,
// retry.NoLimit if there is none.
func (c *Call) callersLeft(now mono.Instant) time.Duration {
	if !c.bounded {
		return retry.NoLimit
	}
	return c.deadline.Sub(now)
}

// bound returns the nearest limit of an attempt that begins at now.
func (c *Call) bound(a *Attempt, now mono.Instant) deadline.Bound {
	b := c.total(now)
	if !a.probe {
		return b.Nearer("Attempt", c.limits.Attempt)
	}
	b = b.Nearer("ProbeTimeout", a.ticket.ProbeLimit())
	if c.method.breaker.policy.ProbeTimeout == 0 {
		// It was not set, and so is the limit of an attempt: of this method's.
		b = b.Nearer("Attempt", c.limits.Attempt)
	}
	// What an override, the attempts before or the wait for a fleet's lock have
	// left of the time is this call's own affair.
	own := c.limits != c.method.inForce.limits
	a.hasty = b.Limit == "Total" && (own || c.Attempt() > 1 || now.After(c.now)) || b.Limit == "Attempt" && own
	return b
}

// total returns what is left of Total at now.
func (c *Call) total(now mono.Instant) deadline.Bound {
	if c.limits.Total <= 0 {
		return deadline.Bound{}
	}
	// It is at least a nanosecond: Next saw to it.
	return deadline.Bound{Limit: "Total", Whole: c.limits.Total, Left: max(c.totalLeft(now), 1)}
}

// firstMessage returns the limit on the first message of an attempt that begins
// at now.
func (c *Call) firstMessage(now mono.Instant) deadline.Bound {
	if c.limits.FirstMessage <= 0 {
		return deadline.Bound{}
	}
	var b deadline.Bound
	if c.stream {
		b = c.total(now)
	}
	return b.Nearer("FirstMessage", c.limits.FirstMessage)
}

// TimeLeft returns how long the call may go on, retry.NoLimit if nothing bounds
// it.
func (c *Call) TimeLeft() time.Duration {
	c.now = mono.Now()
	return max(c.left(), 0)
}
