package instance

import (
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/outlier"
)

// rules returns those of one instance: an ejection is an opening, and a trial
// is its one probe.
func rules(c outlier.Config) breaker.Config {
	c = c.WithDefaults()
	return breaker.Config{
		Window: breaker.Window{Calls: c.Window}, MinCalls: c.MinCalls, FailureRate: c.FailureRate,
		Cooldown: c.Time, MaxCooldown: c.MaxTime,
		Probes: 1, ProbeSuccesses: 1, ProbeTimeout: c.TrialTimeout,
		Hooks: breaker.Hooks{Transition: func(t breaker.Transition) { tell(c, t) }},
	}
}

func tell(c outlier.Config, t breaker.Transition) {
	switch {
	case t.To == breaker.Open && c.Ejected != nil:
		c.Ejected(t.Key, t.Cooldown)
	case t.To == breaker.Closed && c.Returned != nil:
		c.Returned(t.Key)
	}
}
