package bulkhead

import "github.com/holdfast-go/holdfast/internal/enum"

// Scope says which calls share a bulkhead. It is for whoever keeps bulkheads by
// key; a [Bulkhead] itself does not look at it.
type Scope uint8

// The scopes.
const (
	// PerTarget: the calls to one target.
	PerTarget Scope = iota

	// PerMethod: the calls of one method on one target.
	PerMethod

	// TwoLevel: the calls to one target, and within them those of one resource or
	// method, with a bulkhead for each (see [AcquireBoth] and Config.MethodLimit).
	// So one method that hangs does not take the permits of all.
	TwoLevel

	scopes = int(TwoLevel) + 1
)

var scopeNames = [scopes]string{"per_target", "per_method", "two_level"}

// String returns the scope in lower snake case.
func (s Scope) String() string {
	return enum.Name(scopeNames[:], s, "scope")
}

// ForMethod returns the config of the bulkhead of one resource or method where c
// has the Scope TwoLevel; c itself is then that of the target's. It differs in
// the limit alone, and an adaptive limit stays within that.
func (c Config) ForMethod() Config {
	if c.off {
		return c
	}
	c.Limit = c.methodLimit()
	c.Adaptive.Start = min(c.Adaptive.Start, c.Limit)
	c.Scope, c.MethodLimit = PerMethod, 0
	return c
}

func (c Config) methodLimit() int {
	if c.MethodLimit == 0 {
		return c.Limit - c.Limit/2
	}
	return c.MethodLimit
}
