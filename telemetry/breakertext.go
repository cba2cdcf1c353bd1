package telemetry

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/breaker"
)

// What the template asks of a breaker's view beside its fields: words and figures
// for people.

// Calm reports whether the breaker may stand in the list of those that are well.
func (v breakerView) Calm() bool {
	return v.State == "closed" && v.Failures+v.Slow == 0 && v.Admits == 1
}

// Closed reports whether the breaker admits calls by its rules.
func (v breakerView) Closed() bool { return v.State == "closed" }

// Word is the state for people.
func (v breakerView) Word() string {
	word := strings.ReplaceAll(words(v.State), "half open", "half-open")
	switch {
	case v.State == "closed" && v.Admits < 1:
		return "recovering"
	case v.Shadow && v.State != "closed" && v.State != "disabled":
		return "would be " + word
	}
	return word
}

// Cut says how long the breaker has not been closed, or would not have been if it is
// a shadow, and why.
func (v breakerView) Cut() string {
	if v.CutFor == nil || v.State == "disabled" {
		return ""
	}
	text := "cut off for "
	if v.Shadow {
		text = "would have been " + text
	}
	text += span(seconds(*v.CutFor)) + ": " + reasonText(v.CutReason)
	if v.cut.Failures > 0 {
		text += fmt.Sprintf(", %d of %d", v.cut.Failures, v.cut.Results)
	}
	return text
}

// Since says how long it has been in its state, and why, unless Cut says so.
func (v breakerView) Since() string {
	if v.Cut() != "" && v.Reason == v.CutReason {
		return ""
	}
	var parts []string
	if v.For != nil {
		parts = append(parts, "for "+span(seconds(*v.For)))
	}
	if v.Reason != "" {
		parts = append(parts, reasonText(v.Reason))
	}
	text := strings.Join(parts, ", ")
	if v.Openings > 1 {
		text += fmt.Sprintf(" · %d openings in a row", v.Openings)
	}
	return text
}

// Cost says how many calls the breaker has turned away, and how often it opened; of
// a shadow what it would have.
func (v breakerView) Cost() string {
	var parts []string
	switch {
	case v.RefusedSince > 0:
		parts = append(parts, v.calls(v.RefusedSince)+" turned away since then")
	case v.Refused > 0:
		parts = append(parts, v.calls(v.Refused)+" turned away in all")
	}
	if opens := v.OpensText(); opens != "" {
		parts = append(parts, opens)
	}
	return strings.Join(parts, " · ")
}

func (v breakerView) calls(n uint64) string {
	text := several(n, "call")
	if v.Shadow {
		text += " would have been"
	}
	return text
}

// OpensText says how often the breaker opened, or would have, "" if never.
func (v breakerView) OpensText() string {
	switch {
	case v.Opens == 0:
		return ""
	case v.Shadow:
		return "would have opened " + count(v.Opens) + " ×"
	}
	return "opened " + count(v.Opens) + " ×"
}

var reasonTexts = map[string]string{
	"failure_rate": "too many failures", "slow_rate": "too many slow calls", "failures": "too many failures",
	"consecutive": "failures in a row", "stalled": "it fell silent", "cooldown_over": "the cooldown is over",
	"probe_forced": "a probe was forced", "probe_failed": "a probe failed", "probe_slow": "a probe was slow",
	"probe_expired": "a probe got no answer", "recovered": "it recovered", "forced": "by hand", "released": "released by hand",
	"disabled": "by hand", "enabled": "enabled by hand", "reset": "reset by hand",
}

func reasonText(reason string) string {
	if text := reasonTexts[reason]; text != "" {
		return text
	}
	return words(reason)
}

// CooldownWidth is the part of the cooldown that has passed, of 100.
func (v breakerView) CooldownWidth() float64 {
	if v.Cooldown <= 0 {
		return 0
	}
	return 100 * min(1, max(0, 1-v.Left/v.Cooldown))
}

// LeftText is what is left of the cooldown.
func (v breakerView) LeftText() string { return span(seconds(v.Left)) }

// CooldownText is the length of the cooldown.
func (v breakerView) CooldownText() string { return span(seconds(v.Cooldown)) }

// FailureText is the failure rate.
func (v breakerView) FailureText() string { return percent(v.FailureRate) }

// SlowText is the slow rate.
func (v breakerView) SlowText() string { return percent(v.SlowRate) }

// LimitText is the failure rate that opens, "" if none does.
func (v breakerView) LimitText() string {
	if v.config.FailureRate > 0 {
		return percent(v.config.FailureRate)
	}
	return ""
}

// SlowLimitText is the slow rate that opens, "" if none does.
func (v breakerView) SlowLimitText() string {
	if v.config.SlowRate > 0 {
		return percent(v.config.SlowRate)
	}
	return ""
}

// Stalls reports whether silence can open the breaker.
func (v breakerView) Stalls() bool { return v.config.Stall.After > 0 }

// StallCalls is how many silent attempts do.
func (v breakerView) StallCalls() int { return v.config.Stall.Calls }

// AdmitsText is the share of the calls that a ramp admits.
func (v breakerView) AdmitsText() string { return percent(v.Admits) }

// Admitted is what happens to them.
func (v breakerView) Admitted() string {
	if v.Shadow {
		return "of the calls would be admitted"
	}
	return "of the calls admitted"
}

// ID is the same for a breaker each time, and different for each.
func (v breakerView) ID() string { return fmt.Sprintf("%d|%s", v.kit, v.Name) }

// KitIndex is the place of its kit.
func (v breakerView) KitIndex() int { return v.kit }

// Actions are what may be done to it.
func (v breakerView) Actions() []string {
	switch v.State {
	case breaker.ForcedOpen.String():
		return []string{actionRelease, actionReset}
	case breaker.Disabled.String():
		return []string{actionForceOpen, actionEnable, actionReset}
	}
	return []string{actionForceOpen, actionDisable, actionReset}
}
