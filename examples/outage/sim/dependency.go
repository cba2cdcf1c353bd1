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
