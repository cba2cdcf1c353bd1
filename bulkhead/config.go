package bulkhead

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// Scope says which calls share a bulkhead. It is for whoever keeps bulkheads by
// key; a [Bulkhead] itself does not look at it.
type Scope uint8

const (
	// PerTarget: the calls to one target.
	PerTarget Scope = iota

	// PerMethod: the calls of one method on one target.
	PerMethod

	scopes = int(PerMethod) + 1
)

var scopeNames = [scopes]string{"target", "method"}

// String returns the name that policy files use.
func (s Scope) String() string {
	if int(s) >= scopes {
		return "scope(" + strconv.Itoa(int(s)) + ")"
	}
	return scopeNames[s]
}

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

	// Scope says which calls share the bulkhead. Zero is PerTarget.
	Scope Scope

	off bool
}

// Off returns a config that limits nothing. Unlike nil, which inherits, it is a
// decision of its own.
func Off() *Config { return &Config{off: true} }

// IsOff reports whether c was made by [Off] or is a copy of such a value.
func (c *Config) IsOff() bool { return c != nil && c.off }

// Check returns every bad field.
func (c Config) Check() check.Faults {
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
	if int(c.Scope) >= scopes {
		faults.Add("Scope", c.Scope, "is not one of the scopes of package bulkhead")
	}
	return faults
}
