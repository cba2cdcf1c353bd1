package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/enum"
)

// Config says when a breaker opens, how long it stays open and how it comes
// back. A zero field is its documented default; the zero Config is valid: it
// opens at a failure rate of 0.5 over the last 20 s.
//
// Five rules can open a breaker: FailureRate, Failures, Consecutive, SlowRate
// (or SlowCall alone) and Stall. Each is off unless set and works independently
// of the others. A Config that sets none of them gets FailureRate 0.5.
type Config struct {
	// Window holds the results that the rates and Failures look at. Zero is
	// the last 20 s in 10 buckets. With no rule that looks at it and no
	// explicit setting there is no window.
	Window Window

	// MinCalls is the number of results in the window from which the two rates
	// are judged; it guards nothing else. Zero is 10, or Window.Calls if that
	// is smaller.
	MinCalls int

	// FailureRate is the share of failures, 0 < r <= 1, that opens. Zero is no
	// such rule, or 0.5 if no other rule is set.
	FailureRate float64

	// Failures opens at this many failures within the window, whatever the
	// successes, at most 30,000. Zero is no such rule.
	Failures int

	// Consecutive opens at this many failures in a row, at most 2,000. Zero is no
	// such rule.
	Consecutive int

	// SlowCall makes an attempt slow that takes longer than this to be
	// answered. Zero means that none is slow.
	SlowCall time.Duration

	// SlowRate is the share of slow attempts, 0 < r <= 1, that opens. Zero is
	// 0.5 if SlowCall is set, else no such rule.
	SlowRate float64

	// Stall opens on silence, before the first attempt returns. The zero Stall
	// is no such rule.
	Stall Stall

	// Cooldown is how long the first opening in a row lasts. Zero is 5 s.
	Cooldown time.Duration

	// MaxCooldown bounds the growth of the cooldown and what a Retry-After may
	// make of it. Zero is 6 x Cooldown.
	MaxCooldown time.Duration

	// CooldownFactor, at least 1, multiplies the cooldown with each opening in
	// a row. Zero is 2; 1 is no growth.
	CooldownFactor float64

	// Jitter spreads each cooldown once over [1-j, 1+j], 0 < j <= 1. Zero is
	// 0.2; NoJitter is none.
	Jitter float64

	// Probes is the number of attempts that may be in flight while half-open.
	// Zero is 1.
	Probes int

	// ProbeSuccesses is the number of successful probes in a row that close.
	// Zero is 3. With ProbeRate it is a least number of successes among the
	// Probes results, in any order, and zero is none.
	ProbeSuccesses int

	// ProbeRate, if set, replaces the rule of successes in a row: half-open
	// lasts for Probes results, of which this share, 0 < r <= 1, must be
	// successes; it is decided as soon as it is certain. Zero is no such rule.
	ProbeRate float64

	// ProbeTimeout is the length of a probe's lease: an attempt that is not
	// answered within it has failed. It is also the limit of that attempt.
	// Zero is 10 s; in a kit it is Timeout.Attempt, or 10 s without one.
	ProbeTimeout time.Duration

	// ProbeLatency makes a successful probe a failed one if it takes longer
	// than this to be answered. Zero means that none does.
	ProbeLatency time.Duration

	// RampUp is how long after a recovery only a growing share of the calls is
	// admitted. Zero is no ramp.
	RampUp time.Duration

	// RampFrom is the share at the start of the ramp, 0 < r < 1. Zero is 0.1.
	RampFrom float64

	// Scope says which calls share a breaker. The zero Scope is PerTarget. The
	// breaker itself does not read it: it is for those who make the keys of a
	// Group.
	Scope Scope

	// CountThrottled makes the verdict Throttled a failure in the closed state.
	// Zero is neutral. A throttled probe has failed in either case.
	CountThrottled bool

	// Shadow makes the breaker measure, change its state and report as ever,
	// but refuse nothing: Totals.Shadow has what it would have done. It shares
	// nothing with a fleet.
	Shadow bool

	// LocalOnly keeps the state of a breaker of a [Fleet] to this process: it
	// neither tells the others nor hears of them. Without a fleet it says
	// nothing.
	LocalOnly bool

	// Quorum is how many workers of a [Fleet] must be in trouble before the
	// others open too. Until then each that is opens by itself. Zero is 1.
	// Without a fleet it says nothing.
	Quorum int

	// Hooks are told what happens. Zero is none.
	Hooks Hooks

	off bool
}

// Window is either the last Calls results or the last Span of time; at most one
// of the two is set.
type Window struct {
	// Calls is the number of results looked at, at most 32,768.
	Calls int

	// Span is the time looked at. It slides in steps of Span / Buckets; a
	// result never counts for longer than Span. Zero, with Calls zero, is 20 s.
	//
	// Should there be more than 33 million results in it, or 65,535 if SlowCall is
	// set, all counts are halved, now and again: the rates stay as they are, the
	// numbers that [Counts] tells do not. The rule Failures counts each failure all
	// the same.
	Span time.Duration

	// Buckets is the number of parts of Span, 2 to 1,000. Zero is 10.
	Buckets int
}

// Stall describes a silent dependency: at least Calls attempts have been
// unanswered for longer than After, they are at least half of all in flight,
// and none has been answered well within After. It is found by the next use of
// the breaker, at most 0.3 x After late.
type Stall struct {
	// After is how long an attempt may be unanswered before it speaks for
	// silence. Zero is no stall rule.
	After time.Duration

	// Calls is how many such attempts it takes. Zero is 10.
	Calls int
}

// Scope says which calls share a breaker.
type Scope uint8

// The scopes.
const (
	// PerTarget: one breaker for each target.
	PerTarget Scope = iota

	// PerMethod: one breaker for each method of each target.
	PerMethod

	// TwoLevel: one for each resource or method, and one for the target; both
	// are asked (see [AllowBoth]).
	TwoLevel
)

var scopeNames = []string{"per_target", "per_method", "two_level"}

// String returns the scope in lower snake case.
func (s Scope) String() string { return enum.Name(scopeNames, s, "scope") }

// NoJitter, as Config.Jitter, makes every cooldown exact.
const NoJitter = -1

// The defaults of Config; see its fields.
const (
	defaultSpan         = 20 * time.Second
	defaultBuckets      = 10
	defaultMinCalls     = 10
	defaultRate         = 0.5
	defaultStallCalls   = 10
	defaultCooldown     = 5 * time.Second
	defaultMaxFactor    = 6
	defaultFactor       = 2
	defaultJitter       = 0.2
	defaultProbes       = 1
	defaultSuccesses    = 3
	defaultProbeTimeout = 10 * time.Second
	defaultRampFrom     = 0.1
)

// Off returns a Config that switches the breaker of a policy off. Unlike nil, which
// inherits, it is a decision of its own; the mark survives copying.
func Off() *Config { return &Config{off: true} }

// IsOff reports whether c was made by [Off] or is a copy of such a value.
func (c *Config) IsOff() bool { return c != nil && c.off }

// WithDefaults returns c with every zero field filled in that has a default; the Window
// stays zero if no rule looks at it. A breaker made of it is the same.
func (c Config) WithDefaults() Config {
	if c.SlowCall > 0 && c.SlowRate == 0 {
		c.SlowRate = defaultRate
	}
	if !c.hasRule() {
		c.FailureRate = defaultRate
	}
	looksAtWindow := c.FailureRate > 0 || c.SlowRate > 0 || c.Failures > 0
	if looksAtWindow && c.Window.Calls == 0 {
		def(&c.Window.Span, defaultSpan)
	}
	if c.Window.Span > 0 {
		def(&c.Window.Buckets, defaultBuckets)
	}
	if c.Window.Calls > 0 {
		def(&c.MinCalls, min(defaultMinCalls, c.Window.Calls))
	}
	def(&c.MinCalls, defaultMinCalls)
	if c.Stall.After > 0 {
		def(&c.Stall.Calls, defaultStallCalls)
	}
	def(&c.Cooldown, defaultCooldown)
	def(&c.MaxCooldown, times(c.Cooldown, defaultMaxFactor))
	def(&c.CooldownFactor, defaultFactor)
	def(&c.Jitter, defaultJitter)
	def(&c.Probes, defaultProbes)
	if c.ProbeRate == 0 {
		def(&c.ProbeSuccesses, defaultSuccesses)
	}
	def(&c.ProbeTimeout, defaultProbeTimeout)
	if c.RampUp > 0 {
		def(&c.RampFrom, defaultRampFrom)
	}
	return c
}

// hasRule reports whether a rule that can open is set.
func (c Config) hasRule() bool {
	return c.FailureRate != 0 || c.Failures != 0 || c.Consecutive != 0 || c.SlowRate != 0 || c.Stall.After != 0
}

// def sets a zero field to its default.
func def[T int | float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
