package bulkhead

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Config says how many attempts a bulkhead lets through.
type Config struct {
	// Limit is how many attempts run at once. It must be at least 1: zero is an
	// error, since neither "all" nor "none" can be meant by leaving it out.
	// Any value up to math.MaxInt costs the same.
	Limit int

	// Queue is how many attempts wait for one of the others to end. Zero is
	// none: what finds no permit is refused at once.
	Queue int

	// MaxWait is how long an attempt waits at most. Zero is as long as its
	// context lasts.
	MaxWait time.Duration

	// Adaptive lets the limit shrink below Limit while attempts fail. Zero keeps it
	// fixed.
	Adaptive Adaptive

	// Scope says which calls share the bulkhead. Zero is PerTarget.
	Scope Scope

	// MethodLimit is how many attempts of one resource or method run at once if
	// Scope is TwoLevel, at most Limit. Zero is half of Limit, rounded up.
	MethodLimit int

	off bool
}

// Off returns a config that limits nothing. Unlike nil, which inherits, it is a
// decision of its own.
func Off() *Config { return &Config{off: true} }

// IsOff reports whether c was made by [Off] or is a copy of such a value.
func (c *Config) IsOff() bool { return c != nil && c.off }

// Check returns nil, or an error that names every bad field.
func (c Config) Check() error { return c.check().Err("bulkhead") }

func (c Config) check() check.Faults {
	var faults check.Faults
	if c.off {
		return nil
	}
	if c.Limit < 1 {
		faults.Add("Limit", c.Limit, "must be at least 1; bulkhead.Off() limits nothing")
	}
	if c.Queue < 0 {
		faults.Add("Queue", c.Queue, "must not be negative; 0 is no queue")
	}
	if c.MaxWait < 0 {
		faults.Add("MaxWait", c.MaxWait, "must not be negative; 0 waits as long as the context lasts")
	}
	if c.MaxWait > 0 && c.Queue == 0 {
		faults.Add("MaxWait", c.MaxWait, "has no effect without a Queue")
	}
	if c.Limit >= 1 {
		faults.In("Adaptive", c.Adaptive.check(c.Limit))
	}
	switch {
	case int(c.Scope) >= scopes:
		faults.Add("Scope", c.Scope, "is not one of the scopes of package bulkhead")
	case c.Scope != TwoLevel && c.MethodLimit != 0:
		faults.Add("MethodLimit", c.MethodLimit, "has no effect unless Scope is TwoLevel")
	case c.MethodLimit < 0 || c.Limit >= 1 && c.MethodLimit > c.Limit:
		faults.Add("MethodLimit", c.MethodLimit, "must be in [1, Limit = %d], or 0 for half of Limit", c.Limit)
	case c.Scope == TwoLevel && c.Adaptive.Min > c.methodLimit():
		faults.Add("Adaptive.Min", c.Adaptive.Min, "must not exceed MethodLimit = %d", c.methodLimit())
	}
	return faults
}
