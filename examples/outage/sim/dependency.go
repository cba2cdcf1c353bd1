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
