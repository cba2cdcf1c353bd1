package telemetry

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// layer is one layer of a policy in words, and where it comes from.
type layer struct {
	Name string `json:"name"`
	Text string `json:"text"`
	From string `json:"from"`
	Off  bool   `json:"off,omitempty"`
}

// layers puts a policy into words, in the order in which its layers stand.
func layers(e holdfast.Explanation) []layer {
	p := e.Policy
	all := []layer{
		{Name: "fallback", Text: fallbackText(p.Fallback), From: e.From.Fallback, Off: p.Fallback.IsOff()},
		{Name: "retry", Text: retryText(p.Retry), From: e.From.Retry, Off: p.Retry.IsOff()},
		{Name: "breaker", Text: breakerText(p.Breaker), From: e.From.Breaker, Off: p.Breaker.IsOff()},
		{Name: "timeout", Text: timeoutText(p.Timeout), From: e.From.Timeout, Off: p.Timeout.IsOff()},
		{Name: "bulkhead", Text: bulkheadText(p.Bulkhead), From: e.From.Bulkhead, Off: p.Bulkhead.IsOff()},
	}
	for i := range all {
		if all[i].Off {
			all[i].Text = "off"
		}
	}
	return all
}

func fallbackText(p *fallback.Policy) string {
	var answers []string
	if p.Stale != nil {
		answers = append(answers, "an earlier answer, up to "+span(p.Stale.WithDefaults().MaxStale)+" old")
	}
	if p.Answer != nil {
		answers = append(answers, "a computed one")
	}
	return "a read that failed gets " + strings.Join(answers, ", or ")
}

func retryText(p *retry.Policy) string {
	f := p.WithDefaults()
	parts := []string{several(f.MaxAttempts, "attempt")}
	if f.MaxAttempts == retry.Unlimited {
		parts[0] = "attempts without bound"
	}
	switch b := f.Backoff; {
	case p.Hedge.Sends() && p.Hedge.Percentile > 0:
		parts = append(parts, "a hedge beyond the "+percent(p.Hedge.Percentile)+" latency")
	case p.Hedge.Sends():
		parts = append(parts, "a hedge after "+span(p.Hedge.Delay))
	case b.Base > 0:
		parts = append(parts, fmt.Sprintf("waits %s × %s up to %s", span(b.Base), number(b.Factor), span(b.Cap)))
	}
	if b := f.Budget; b.IsNone() {
		parts = append(parts, "no budget")
	} else {
		parts = append(parts, fmt.Sprintf("budget %s + %s/s", percent(b.WithDefaults().Share), number(b.WithDefaults().PerSecond)))
	}
	return strings.Join(parts, ", ")
}

func breakerText(c *breaker.Config) string {
	f := c.WithDefaults()
	window := ""
	switch {
	case f.Window.Calls > 0:
		window = " of " + several(f.Window.Calls, "result")
	case f.Window.Span > 0:
		window = " in " + span(f.Window.Span)
	}
	var rules []string
	if f.FailureRate > 0 {
		rules = append(rules, fmt.Sprintf("%s failures%s (at least %d)", percent(f.FailureRate), window, f.MinCalls))
	}
	if f.Failures > 0 {
		rules = append(rules, several(f.Failures, "failure")+window)
	}
	if f.Consecutive > 0 {
		rules = append(rules, several(f.Consecutive, "failure")+" in a row")
	}
	if f.SlowRate > 0 {
		rules = append(rules, fmt.Sprintf("%s slower than %s", percent(f.SlowRate), span(f.SlowCall)))
	}
	if f.Stall.After > 0 {
		rules = append(rules, fmt.Sprintf("%d silent for %s", f.Stall.Calls, span(f.Stall.After)))
	}
	text := "opens at " + strings.Join(rules, " or ") + fmt.Sprintf("; open %s to %s", span(f.Cooldown), span(f.MaxCooldown))
	if f.ProbeRate > 0 {
		text += "; closes at " + percent(f.ProbeRate) + " of " + several(f.Probes, "probe")
	} else {
		text += "; closes after " + several(f.ProbeSuccesses, "good probe")
	}
	if f.RampUp > 0 {
		text += fmt.Sprintf("; ramp of %s from %s", span(f.RampUp), percent(f.RampFrom))
	}
	if f.Scope != breaker.PerTarget {
		text += "; " + words(f.Scope.String())
	}
	if f.Shadow {
		text += "; shadow: refuses nothing"
	}
	return text
}

func timeoutText(l *timeout.Limits) string {
	var parts []string
	for _, limit := range []struct {
		name string
		d    time.Duration
	}{{"total", l.Total}, {"attempt", l.Attempt}, {"first message", l.FirstMessage}, {"idle", l.Idle}, {"floor", l.Floor}} {
		if limit.d > 0 {
			parts = append(parts, limit.name+" "+span(limit.d))
		}
	}
	if len(parts) == 0 {
		return "no limit"
	}
	return strings.Join(parts, ", ")
}

func bulkheadText(c *bulkhead.Config) string {
	text := fmt.Sprintf("%d at once", c.Limit)
	if c.Queue > 0 {
		text += fmt.Sprintf(", %d may wait", c.Queue)
	}
	if c.Queue > 0 && c.MaxWait > 0 {
		text += " for " + span(c.MaxWait)
	}
	if c.Adaptive != (bulkhead.Adaptive{}) {
		text += ", adaptive"
	}
	if c.Scope != bulkhead.PerTarget {
		text += "; " + words(c.Scope.String())
	}
	return text
}

// words makes a word of metrics one for people.
func words(word string) string { return strings.ReplaceAll(word, "_", " ") }

func percent(share float64) string { return number(share*100) + " %" }

// number writes a number with as few digits as it needs, at most one behind the
// point.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// span writes a duration as people do: 250 ms, 4.2 s, 3 min, 2 h 5 min, 4 d.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return number(d.Seconds()) + " s"
	case d < time.Minute:
		return strconv.FormatInt(int64(d.Seconds()), 10) + " s"
	case d < time.Hour:
		return whole(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return whole(d, time.Hour, "h", time.Minute, "min")
	}
	return whole(d, 24*time.Hour, "d", time.Hour, "h")
}

func whole(d, unit time.Duration, name string, part time.Duration, partName string) string {
	text := fmt.Sprintf("%d %s", d/unit, name)
	if rest := d % unit / part; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, partName)
	}
	return text
}

// count writes a count with thin spaces between groups of three digits.
func count(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u2009" + text[i:]
	}
	return text
}

// several writes a count with its noun, which makes its plural with an s.
func several[N int | uint64](n N, noun string) string {
	text := count(uint64(n)) + " " + noun
	if n != 1 {
		text += "s"
	}
	return text
}
