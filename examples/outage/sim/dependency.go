package sim

import "time"

// Silent answers after Latency, but from From to To, by when an attempt was sent,
// it answers nothing.
type Silent struct {
	Latency  time.Duration
	From, To time.Duration
}

// Answer implements [Dependency].
func (d Silent) Answer(sent time.Duration) Answer {
	return Answer{After: d.Latency, Silent: sent >= d.From && sent < d.To}
}

// Failing answers after Latency, but from From to To it answers with an error
// after Error.
type Failing struct {
	Latency, Error time.Duration
	From, To       time.Duration
}

// Answer implements [Dependency].
func (d Failing) Answer(sent time.Duration) Answer {
	if sent >= d.From && sent < d.To {
		return Answer{After: d.Error, Failed: true}
	}
	return Answer{After: d.Latency}
}

// Slow answers after Slow from From to To.
type Slow struct {
	Latency, Slow time.Duration
	From, To      time.Duration
}

// Answer implements [Dependency].
func (d Slow) Answer(sent time.Duration) Answer {
	if sent >= d.From && sent < d.To {
		return Answer{After: d.Slow}
	}
	return Answer{After: d.Latency}
}

// Partly passes a share of the attempts on to Bad, by chance, and the others to
// Good: one of several instances is in trouble.
type Partly struct {
	Good, Bad Dependency
	Share     float64
	Chance    Chance
}

// Answer implements [Dependency].
func (d Partly) Answer(sent time.Duration) Answer {
	if d.Chance() < d.Share {
		return d.Bad.Answer(sent)
	}
	return d.Good.Answer(sent)
}

// Flapping is in trouble for the first half of each Period from From to To.
type Flapping struct {
	Good, Bad Dependency
	Period    time.Duration
	From, To  time.Duration
}

// Answer implements [Dependency].
func (d Flapping) Answer(sent time.Duration) Answer {
	if sent >= d.From && sent < d.To && (sent-d.From)%d.Period < d.Period/2 {
		return d.Bad.Answer(sent)
	}
	return d.Good.Answer(sent)
}

// Limited works on one attempt after the other from Since to Until, PerSecond a
// second, in the order in which they came; before and after that it is what
// Dependency is. It works on those too whose callers have given up.
type Limited struct {
	Dependency
	PerSecond    float64
	Since, Until time.Duration

	free time.Duration // when it has done all that came
}

// Answer implements [Dependency].
func (d *Limited) Answer(sent time.Duration) Answer {
	a := d.Dependency.Answer(sent)
	if sent < d.Since || sent >= d.Until && d.free <= sent || a.Silent {
		return a
	}
	d.free = max(d.free, sent) + time.Duration(float64(time.Second)/d.PerSecond)
	a.After += d.free - sent
	return a
}
