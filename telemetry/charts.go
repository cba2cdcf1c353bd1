package telemetry

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// What the template asks of the views beside their fields. Charts are drawn here,
// as numbers and words for the SVG in the template.

// bar is a rectangle of a chart.
type bar struct {
	X, Y, W, H float64
	Class      string
}

// column is a part of a window: what is drawn of it, and what is told.
type column struct {
	Bars  []bar
	X, W  float64
	Title string
}

// The size of a window's chart.
const (
	chartWidth  = 240.0
	chartHeight = 48.0
)

// Chart draws the window: a column for each part, as high as its results are many,
// failures below, slow ones above them, good ones on top.
func (v breakerView) Chart() []column {
	most := 1
	for _, p := range v.Window {
		most = max(most, p.Results)
	}
	var columns []column
	step := chartWidth / float64(max(len(v.Window), 1))
	for i, p := range v.Window {
		c := column{X: float64(i) * step, W: step, Title: v.partTitle(i, p)}
		base := chartHeight
		for _, piece := range []struct {
			n     int
			class string
		}{{p.Failures, "failed"}, {max(0, min(p.Slow, p.Results-p.Failures)), "slow"}, {max(0, p.Results-p.Failures-p.Slow), "ok"}} {
			if piece.n > 0 {
				h := max(1, chartHeight*float64(piece.n)/float64(most))
				base -= h
				c.Bars = append(c.Bars, bar{c.X + 0.5, max(base, 0), max(step-1, 0.5), h, piece.class})
			}
		}
		columns = append(columns, c)
	}
	return columns
}

func (v breakerView) partTitle(i int, p partView) string {
	when := ""
	if v.PartFor > 0 {
		when = fmt.Sprintf("up to %s ago: ", span(seconds(v.PartFor*float64(len(v.Window)-i))))
	}
	text := fmt.Sprintf("%s%d results, %d failed", when, p.Results, p.Failures)
	if p.Slow > 0 {
		text += fmt.Sprintf(", %d slow", p.Slow)
	}
	return text
}

// WindowText says what the window is of.
func (v breakerView) WindowText() string {
	switch {
	case v.PartFor > 0:
		return "last " + span(seconds(v.PartFor*float64(len(v.Window))))
	case len(v.Window) > 0:
		return fmt.Sprintf("last %d results", v.config.Window.Calls)
	}
	return ""
}

// segment is a stretch of time in one state.
type segment struct {
	X, W  float64
	Class string
	Title string
}

// stripTime is how far back a strip goes: ten minutes, or as long as the page has
// listened, but a minute at least.
func (v breakerView) stripTime() time.Duration {
	return min(max(v.at.Sub(v.since).Truncate(time.Minute), time.Minute), 10*time.Minute)
}

// StripText says how long that is.
func (v breakerView) StripText() string { return span(v.stripTime()) }

// Strip draws the states of the last minutes, 1000 units wide.
func (v breakerView) Strip() []segment {
	length := v.stripTime()
	from := v.at.Add(-length)
	x := func(t time.Time) float64 {
		return 1000 * min(1, max(0, t.Sub(from).Seconds()/length.Seconds()))
	}
	var strip []segment
	add := func(state string, begin, end time.Time) {
		if w := x(end) - x(begin); w > 0 {
			strip = append(strip, segment{x(begin), max(w, 2), state, words(state) + " for " + span(end.Sub(begin))})
		}
	}
	end, state := v.at, v.State
	if len(v.past) > 0 && v.past[0].To.String() != state {
		// The cooldown has passed, and nobody has called since.
		changed := v.at
		if v.For != nil {
			changed = v.at.Add(-seconds(*v.For))
		}
		add(state, changed, end)
		end = changed
	}
	for _, c := range v.past {
		add(c.To.String(), c.at, end)
		end, state = c.at, c.From.String()
	}
	if len(v.past) < changes {
		add(state, v.since, end)
	}
	return strip
}

// Calm reports whether the breaker may stand in the list of those that are well.
func (v breakerView) Calm() bool {
	return v.State == "closed" && v.Failures+v.Slow == 0 && v.Admits == 1
}

// Closed reports whether the breaker admits calls by its rules.
func (v breakerView) Closed() bool { return v.State == "closed" }

// Word is the state for people.
func (v breakerView) Word() string {
	if v.State == "closed" && v.Admits < 1 {
		return "recovering"
	}
	return strings.ReplaceAll(words(v.State), "half open", "half-open")
}

// Cut says how long the breaker has not been closed, and why.
func (v breakerView) Cut() string {
	if v.CutFor == nil || v.State == "disabled" {
		return ""
	}
	text := "cut off for " + span(seconds(*v.CutFor)) + ": " + reasonText(v.CutReason)
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
		text += fmt.Sprintf(" · opened %d times in a row", v.Openings)
	}
	return text
}

// Cost says how many calls the breaker has turned away, and how often it opened.
func (v breakerView) Cost() string {
	var parts []string
	switch {
	case v.RefusedSince > 0:
		parts = append(parts, count(v.RefusedSince)+" calls turned away since then")
	case v.Refused > 0:
		parts = append(parts, count(v.Refused)+" calls turned away in all")
	}
	if v.Opens > 0 {
		parts = append(parts, "opened "+count(v.Opens)+" ×")
	}
	return strings.Join(parts, " · ")
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

// LeftText and the like are figures for people.
func (v breakerView) LeftText() string { return span(seconds(v.Left)) }

// CooldownText is the length of the cooldown.
func (v breakerView) CooldownText() string { return span(seconds(v.Cooldown)) }

// FailureText is the failure rate, and SlowText the slow rate.
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

// Text tells what happened.
func (c changeView) Text() string {
	text := words(c.From) + " → " + words(c.To)
	if c.Reason != "" {
		text += ": " + reasonText(c.Reason)
	}
	if c.From == "closed" && c.Results > 0 {
		text += fmt.Sprintf(", %d of %d failed", c.Failures, c.Results)
	}
	return text
}

// Ago says when.
func (c changeView) Ago() string {
	if c.ago < time.Second {
		return "now"
	}
	return span(c.ago.Truncate(time.Second)) + " ago"
}

// Clock is the time of day.
func (c changeView) Clock() string { return c.At.Format("15:04:05") }

// Use is the share of the permits that are out.
func (b bulkheadView) Use() float64 { return share(b.InUse+b.Waiting, b.Limit) }

// Width is it, of 100.
func (b bulkheadView) Width() float64 { return 100 * min(1, share(b.InUse, b.Limit)) }

// Class says how full it is.
func (b bulkheadView) Class() string { return fullness(share(b.InUse, b.Limit)) }

func fullness(share float64) string {
	switch {
	case share >= 0.9:
		return "failed"
	case share >= 0.6:
		return "slow"
	}
	return "ok"
}

// Left is the share of the tokens that are left.
func (b budgetView) Left() float64 {
	if b.Cap <= 0 {
		return 1
	}
	return b.Tokens / b.Cap
}

// Width is it, of 100.
func (b budgetView) Width() float64 { return 100 * min(1, max(0, b.Left())) }

// Class says how empty it is.
func (b budgetView) Class() string { return fullness(1 - b.Left()) }

// TokensText and CapText are whole tokens.
func (b budgetView) TokensText() string { return fmt.Sprintf("%.0f", b.Tokens) }

// CapText is how many there may be.
func (b budgetView) CapText() string { return fmt.Sprintf("%.0f", b.Cap) }

// OKText is the share of the calls that were answered.
func (m methodView) OKText() string {
	if m.Calls == 0 {
		return "–"
	}
	return percent(float64(m.OK) / float64(m.Calls))
}

// Class says whether that is few.
func (m methodView) Class() string {
	switch s := float64(m.OK) / float64(max(m.Calls, 1)); {
	case s < 0.95:
		return "failed"
	case s < 0.99:
		return "slow"
	}
	return "ok"
}

// Cut is how many breakers refuse calls by their own rules or by somebody's.
func (v *view) Cut() int { return v.States["open"] + v.States["half_open"] + v.States["forced_open"] }

// All is how many breakers there are.
func (v *view) All() (n int) {
	for _, in := range v.States {
		n += in
	}
	return n
}

// Verdict is the page in a sentence.
func (v *view) Verdict() string {
	all, cut := v.All(), v.Cut()
	switch {
	case all == 0:
		return "No call has been made yet."
	case cut == 0 && v.States["disabled"] > 0:
		return fmt.Sprintf("No breaker is open; %d of %d disabled.", v.States["disabled"], all)
	case cut == 0 && all == 1:
		return "The breaker is closed."
	case cut == 0:
		return fmt.Sprintf("All %s breakers are closed.", count(uint64(all)))
	case cut == 1 && all == 1:
		return "The breaker is not closed."
	}
	return fmt.Sprintf("%s of %s breakers not closed.", count(uint64(cut)), count(uint64(all)))
}

// Mood is the colour of it.
func (v *view) Mood() string {
	switch {
	case v.States["open"] > 0:
		return "open"
	case v.States["half_open"] > 0:
		return "half_open"
	case v.States["forced_open"] > 0:
		return "forced_open"
	case v.States["disabled"] > 0:
		return "disabled"
	}
	return "closed"
}

// Tiles are the states with their counts.
func (v *view) Tiles() []tile {
	return []tile{
		{"open", "open", v.States["open"]}, {"half_open", "half-open", v.States["half_open"]},
		{"forced_open", "forced open", v.States["forced_open"]}, {"disabled", "disabled", v.States["disabled"]},
		{"closed", "closed", v.States["closed"]},
	}
}

type tile struct {
	State, Word string
	N           int
}

// Busy are the breakers that are shown in full, and Calm those in the list.
func (v *view) Busy() []breakerView { return v.part(false) }

// Calm are the others.
func (v *view) Calm() []breakerView { return v.part(true) }

func (v *view) part(calm bool) (part []breakerView) {
	for _, b := range v.Breakers {
		if b.Calm() == calm {
			part = append(part, b)
		}
	}
	return part
}

// Clock is the time of day.
func (v *view) Clock() string { return v.At.Format("15:04:05") }

// Several reports whether kits need to be told apart.
func (v *view) Several() bool { return len(v.Kits) > 1 }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
