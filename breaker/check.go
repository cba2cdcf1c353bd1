package breaker

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
)

// The largest values that the packed words of the windows hold.
const (
	maxWindowCalls = 1 << 15
	maxFailures    = 30_000
	maxConsecutive = 2000
	maxBuckets     = 1000
	minRate        = 1e-9
	maxQuorum      = 1000
)

// Check returns nil, or an error that names every bad field. A Config from [Off] has
// none. Where ProbeTimeout is zero, ProbeLatency is held against it only by those who
// make a breaker.
func (c Config) Check() error { return c.check().Err("breaker") }

func (c Config) check() check.Faults {
	var fs check.Faults
	if c.off {
		return nil
	}
	c.checkWindow(&fs)
	checkRate(&fs, "FailureRate", c.FailureRate)
	checkRate(&fs, "SlowRate", c.SlowRate)
	checkRate(&fs, "ProbeRate", c.ProbeRate)
	checkCount(&fs, "Failures", c.Failures, maxFailures)
	checkCount(&fs, "Consecutive", c.Consecutive, maxConsecutive)
	checkTime(&fs, "SlowCall", c.SlowCall)
	if c.SlowRate != 0 && c.SlowCall == 0 {
		fs.Add("SlowRate", c.SlowRate, "needs SlowCall, which says what slow is")
	}
	checkTime(&fs, "Stall.After", c.Stall.After)
	checkCount(&fs, "Stall.Calls", c.Stall.Calls, math.MaxInt32)
	if c.Stall.Calls != 0 && c.Stall.After == 0 {
		fs.Add("Stall.Calls", c.Stall.Calls, "needs Stall.After, which says when an attempt is overdue")
	}
	c.checkCooldown(&fs)
	c.checkProbes(&fs)
	checkTime(&fs, "RampUp", c.RampUp)
	switch {
	case c.RampFrom != 0 && !(c.RampFrom > 0 && c.RampFrom < 1):
		fs.Add("RampFrom", c.RampFrom, "must be a share between 0 and 1")
	case c.RampFrom != 0 && c.RampUp == 0:
		fs.Add("RampFrom", c.RampFrom, "needs RampUp, the length of the ramp")
	}
	checkCount(&fs, "Quorum", c.Quorum, maxQuorum)
	if c.Quorum > 1 && c.LocalOnly {
		fs.Add("Quorum", c.Quorum, "is a number of workers, of which LocalOnly leaves one")
	}
	if int(c.Scope) >= len(scopeNames) {
		fs.Add("Scope", c.Scope, "must be PerTarget, PerMethod or TwoLevel")
	}
	return fs
}

func (c Config) checkWindow(fs *check.Faults) {
	w := c.Window
	checkCount(fs, "Window.Calls", w.Calls, maxWindowCalls)
	checkTime(fs, "Window.Span", w.Span)
	if w.Calls != 0 && w.Span != 0 {
		fs.Add("Window.Span", w.Span, "cannot be set together with Window.Calls = %d", w.Calls)
	}
	buckets := w.Buckets
	switch {
	case buckets == 0:
		buckets = defaultBuckets
	case buckets < 2 || buckets > maxBuckets:
		fs.Add("Window.Buckets", buckets, "must be 2 to %d; zero is %d", maxBuckets, defaultBuckets)
		buckets = 2
	case w.Calls != 0:
		fs.Add("Window.Buckets", buckets, "is a part of Window.Span and cannot be set together with Window.Calls = %d", w.Calls)
	}
	if w.Span > 0 && w.Span < time.Duration(buckets)*time.Microsecond {
		fs.Add("Window.Span", w.Span, "must be at least a microsecond for each of its %d buckets", buckets)
	}
	checkCount(fs, "MinCalls", c.MinCalls, maxFailures)
	if w.Calls > 0 && c.MinCalls > w.Calls {
		fs.Add("MinCalls", c.MinCalls, "must not exceed Window.Calls = %d, the results there can be", w.Calls)
	}
	if w.Calls > 0 && c.Failures > w.Calls {
		fs.Add("Failures", c.Failures, "must not exceed Window.Calls = %d, the results there can be", w.Calls)
	}
}

func (c Config) checkCooldown(fs *check.Faults) {
	checkTime(fs, "Cooldown", c.Cooldown)
	checkTime(fs, "MaxCooldown", c.MaxCooldown)
	first := c.Cooldown
	def(&first, defaultCooldown)
	if c.MaxCooldown > 0 && c.MaxCooldown < first {
		fs.Add("MaxCooldown", c.MaxCooldown, "must not be below Cooldown = %v", first)
	}
	if f := c.CooldownFactor; f != 0 && !(f >= 1 && f <= 1000) {
		fs.Add("CooldownFactor", f, "must be 1 (no growth) to 1000; zero is %v", defaultFactor)
	}
	if j := c.Jitter; j != NoJitter && !(j >= 0 && j <= 1) {
		fs.Add("Jitter", j, "must be a share between 0 and 1, or NoJitter")
	}
}

func (c Config) checkProbes(fs *check.Faults) {
	const most = 10_000
	checkCount(fs, "Probes", c.Probes, most)
	checkCount(fs, "ProbeSuccesses", c.ProbeSuccesses, most)
	if n := max(c.Probes, defaultProbes); c.ProbeRate != 0 && c.ProbeSuccesses > n {
		fs.Add("ProbeSuccesses", c.ProbeSuccesses, "with ProbeRate must not exceed Probes = %d, the results there will be", n)
	}
	checkTime(fs, "ProbeTimeout", c.ProbeTimeout)
	checkTime(fs, "ProbeLatency", c.ProbeLatency)
	if c.ProbeTimeout > 0 {
		c.checkLatency(fs)
	}
}

// checkLatency checks ProbeLatency against the end of a probe. Without a
// ProbeTimeout of its own that is a matter of who makes the breaker: a kit fills it
// in.
func (c Config) checkLatency(fs *check.Faults) {
	limit := c.ProbeTimeout
	def(&limit, defaultProbeTimeout)
	if limit > 0 && c.ProbeLatency > limit {
		fs.Add("ProbeLatency", c.ProbeLatency, "must not exceed ProbeTimeout = %v, which ends the probe", limit)
	}
}

// faults returns all that keeps c from being put in force; off is what to say if it
// is from Off.
func (c Config) faults(off string) check.Faults {
	fs := c.check()
	switch {
	case c.off:
		fs.Add("Config", nil, "is switched off; %s", off)
	case c.ProbeTimeout == 0:
		c.checkLatency(&fs)
	}
	return fs
}

func checkRate(fs *check.Faults, field string, r float64) {
	switch {
	case r == 0 || r >= minRate && r <= 1:
	case r > 1 && r <= 100:
		fs.Add(field, r, "must be a share, 0 < r <= 1 (did you mean %v?)", r/100)
	default:
		fs.Add(field, r, "must be a share, 0 < r <= 1")
	}
}

func checkCount(fs *check.Faults, field string, n, most int) {
	if n < 0 || n > most {
		fs.Add(field, n, "must be 0 (the default) to %d", most)
	}
}

func checkTime(fs *check.Faults, field string, d time.Duration) {
	if d < 0 {
		fs.Add(field, d, "must not be negative")
	}
}

// times returns n * d, or the longest time if that overflows.
func times(d time.Duration, n int) time.Duration {
	if d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}
