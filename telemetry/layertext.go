package telemetry

import (
	"fmt"
	"time"
)

// What the template asks of the other views: changes, bulkheads, budgets, methods
// and the whole.

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

// All is how many breakers there are, without shadows.
func (v *view) All() int { return sum(v.States) }

func sum(states map[string]int) (n int) {
	for _, in := range states {
		n += in
	}
	return n
}

// Verdict is the page in a sentence, and one more if a shadow would refuse calls.
func (v *view) Verdict() string {
	switch n := v.Shadows["open"] + v.Shadows["half_open"] + v.Shadows["forced_open"]; n {
	case 0:
		return v.verdict()
	case 1:
		return v.verdict() + " A shadow would refuse its calls."
	default:
		return fmt.Sprintf("%s %s shadows would refuse their calls.", v.verdict(), count(uint64(n)))
	}
}

func (v *view) verdict() string {
	all, cut := v.All(), v.Cut()
	switch {
	case all == 0 && sum(v.Shadows) > 0:
		return "No breaker refuses calls: all are shadows."
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
