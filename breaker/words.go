package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/enum"
)

// State is what a breaker does with the next call.
type State uint8

// The states.
const (
	// Closed: calls are admitted and their results judged. After a recovery
	// with RampUp set only a growing share is admitted.
	Closed State = iota

	// Open: calls are refused until the cooldown is over.
	Open

	// HalfOpen: a few probes are admitted and decide.
	HalfOpen

	// ForcedOpen: calls are refused until Release or Reset.
	ForcedOpen

	// Disabled: calls are admitted and measured, nothing is judged.
	Disabled
)

var stateNames = []string{"closed", "open", "half_open", "forced_open", "disabled"}

// String returns the state in lower snake case, as metrics and logs show it.
func (s State) String() string { return enum.Name(stateNames, s, "state") }

// Verdict is what the end of an attempt says about the dependency.
type Verdict uint8

// The verdicts. Any other value, the zero Verdict among them, is treated as
// Failure: a forgotten verdict is never taken for a sign of health.
const (
	_ Verdict = iota

	// Success: the dependency answered, be it that the request is at fault.
	Success

	// Failure: the dependency did not do its work.
	Failure

	// Neutral: the end says nothing about the dependency: a cancelled caller, a
	// refusal further in. It counts nowhere and gives a probe's slot back.
	Neutral

	// Throttled: the dependency asked for less load. It is a Failure for a
	// probe and with Config.CountThrottled, else Neutral.
	Throttled
)

var verdictNames = []string{"invalid", "success", "failure", "neutral", "throttled"}

// String returns the verdict in lower snake case.
func (v Verdict) String() string { return enum.Name(verdictNames, v, "verdict") }

// Outcome is the end of an attempt.
type Outcome struct {
	// Verdict says which way it counts.
	Verdict Verdict

	// RetryAfter is how long the dependency asked to be left alone. If this
	// outcome opens the breaker it lengthens the cooldown, at most to
	// MaxCooldown. Zero means that it did not ask.
	RetryAfter time.Duration
}

// Reason is why a breaker changed its state.
type Reason uint8

// The reasons. ReasonFailureRate to ReasonStalled open a closed breaker, each
// named for the rule of Config that did it.
const (
	_ Reason = iota
	ReasonFailureRate
	ReasonSlowRate
	ReasonFailures
	ReasonConsecutive
	ReasonStalled

	// ReasonCooldownOver: the first call after the cooldown became a probe.
	ReasonCooldownOver

	// ReasonProbeForced: [Breaker.Probe] did not wait for the cooldown's end.
	ReasonProbeForced

	// ReasonProbeFailed, ReasonProbeSlow, ReasonProbeExpired: a probe failed,
	// took longer than ProbeLatency, or was not answered within its lease.
	ReasonProbeFailed
	ReasonProbeSlow
	ReasonProbeExpired

	// ReasonRecovered: enough probes succeeded.
	ReasonRecovered

	// ReasonForced, ReasonReleased, ReasonDisabled, ReasonEnabled, ReasonReset:
	// somebody called the method.
	ReasonForced
	ReasonReleased
	ReasonDisabled
	ReasonEnabled
	ReasonReset

	// ReasonShared, ReasonSharedRecovered: another worker of the fleet opened,
	// or its probes closed.
	ReasonShared
	ReasonSharedRecovered

	// ReasonFleetForced, ReasonFleetReleased: somebody called the method of the
	// [Fleet].
	ReasonFleetForced
	ReasonFleetReleased
)

var reasonNames = []string{
	"none", "failure_rate", "slow_rate", "failures", "consecutive", "stalled",
	"cooldown_over", "probe_forced", "probe_failed", "probe_slow", "probe_expired", "recovered",
	"forced", "released", "disabled", "enabled", "reset",
	"shared", "shared_recovered", "fleet_forced", "fleet_released",
}

// String returns the reason in lower snake case.
func (r Reason) String() string { return enum.Name(reasonNames, r, "reason") }

// Cause is why a call was refused.
type Cause uint8

// The causes.
const (
	// CauseOpen: the cooldown is not over.
	CauseOpen Cause = iota

	// CauseHalfOpen: all probes are in flight.
	CauseHalfOpen

	// CauseForced: the breaker is forced open.
	CauseForced

	// CauseRamp: after a recovery the call is not in the admitted share.
	CauseRamp

	causes = int(CauseRamp) + 1
)

var causeNames = []string{"open", "half_open", "forced_open", "ramp"}

// String returns the cause in lower snake case.
func (c Cause) String() string { return enum.Name(causeNames, c, "cause") }
