package main

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/timeout"
)

// Policy is for a dependency that answers in 50 ms and is called 50 times a second.
// What else it needs it inherits from the standard policy.
func Policy() holdfast.Policy {
	return holdfast.Policy{
		// Well above what the dependency needs, well below what its callers bear.
		Timeout: &timeout.Limits{Total: 5 * time.Second, Attempt: 2 * time.Second},

		Breaker: &breaker.Config{
			FailureRate: 0.5,

			// Silence shows long before the first attempt has timed out.
			Stall: breaker.Stall{After: 200 * time.Millisecond, Calls: 8},

			// A probe a second costs the dependency little and the callers a second at
			// most once it is back. So short a cooldown is for a short ProbeTimeout.
			Cooldown: 800 * time.Millisecond, CooldownFactor: 1,
			ProbeTimeout: 250 * time.Millisecond,
		},

		// 50 calls a second of 50 ms are 2.5 at once. Ten never wait in normal times, and
		// are all that a silence can take of the caller's threads.
		Bulkhead: &bulkhead.Config{Limit: 10, Queue: 10, MaxWait: 50 * time.Millisecond},
	}
}
