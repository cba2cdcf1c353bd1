package telemetry

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
)

// breakerView is a breaker. Times are in seconds, rates are shares.
type breakerView struct {
	Kit    string   `json:"kit"`
	Name   string   `json:"name"`
	State  string   `json:"state"`
	For    *float64 `json:"for_s,omitempty"` // null if it is not known
	Reason string   `json:"reason,omitempty"`
	Note   string   `json:"note,omitempty"`

	// How long ago the breaker was last closed, and why it no longer is; null and
	// empty if the page was not there.
	CutFor    *float64 `json:"not_closed_for_s,omitempty"`
	CutReason string   `json:"not_closed_reason,omitempty"`

	Cooldown float64 `json:"cooldown_s,omitempty"`
	Left     float64 `json:"left_s,omitempty"`
	Openings int     `json:"openings_in_a_row,omitempty"`
	Admits   float64 `json:"admits"`
	Shadow   bool    `json:"shadow,omitempty"`

	Results     int     `json:"results"`
	Failures    int     `json:"failures"`
	Slow        int     `json:"slow"`
	FailureRate float64 `json:"failure_rate"`
	SlowRate    float64 `json:"slow_rate"`
	Consecutive int     `json:"failures_in_a_row"`
	Unanswered  int     `json:"unanswered"`

	Probes         int `json:"probes"`
	MaxProbes      int `json:"max_probes"`
	ProbeSuccesses int `json:"probe_successes"`
	ProbesToClose  int `json:"probes_to_close"`

	// Of a shadow what it would have done.
	Opens        uint64 `json:"opens"`
	Refused      uint64 `json:"refused"`
	RefusedSince uint64 `json:"refused_since_closed"`

	Window  []partView   `json:"window"`
	PartFor float64      `json:"window_part_s,omitempty"`
	Changes []changeView `json:"changes,omitempty"`

	kit    int
	at     time.Time
	since  time.Time // when the page began to listen
	past   []change  // the newest first
	cut    breaker.Counts
	config breaker.Config
}

type partView struct {
	Results  int `json:"results"`
	Failures int `json:"failures"`
	Slow     int `json:"slow"`
}

// found is a breaker before it is known whether it is shown.
type found struct {
	b      *breaker.Breaker
	kit    int
	key    string
	state  breaker.State
	shadow bool
	counts breaker.Counts
}

// trouble ranks a breaker: the less, the more does it want to be seen.
func (f *found) trouble() int {
	switch {
	case f.state == breaker.Closed && f.counts.Failures+f.counts.Slow == 0:
		return 6
	case f.state == breaker.Closed:
		return 5
	case f.shadow:
		return 4
	case f.state == breaker.Open:
		return 0
	case f.state == breaker.HalfOpen:
		return 1
	case f.state == breaker.ForcedOpen:
		return 2
	}
	return 3
}

func (f *found) badShare() float64 {
	return share(f.counts.Failures+f.counts.Slow, f.counts.Results)
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// breaker shows one breaker with its past changes, the newest first.
func (p *Operations) breaker(f found, past []change, now time.Time) breakerView {
	i := f.b.Inspect()
	c := i.Counts
	acts := actions(c.Totals, i.Config.Shadow)
	v := breakerView{
		Kit: p.kits[f.kit].Name(), Name: f.key, State: i.State.String(), Note: i.Note,
		Cooldown: i.Cooldown.Seconds(), Left: i.Left.Seconds(), Openings: i.Openings, Admits: i.Admits, Shadow: i.Config.Shadow,
		Results: c.Results, Failures: c.Failures, Slow: c.Slow,
		FailureRate: share(c.Failures, c.Results), SlowRate: share(c.Slow, c.Results),
		Consecutive: c.Consecutive, Unanswered: c.Unanswered,
		Probes: c.Probes, MaxProbes: i.Config.Probes, ProbeSuccesses: c.ProbeSuccesses, ProbesToClose: i.Config.ProbeSuccesses,
		Opens: acts.Opens, Refused: acts.Refused(), PartFor: i.PartTime.Seconds(),
		Window: []partView{}, kit: f.kit, at: now, since: p.since, past: past, config: i.Config,
	}
	if i.Reason != 0 {
		v.Reason = i.Reason.String()
	}
	for _, part := range i.Window {
		v.Window = append(v.Window, partView(part))
	}
	known, lasted := i.Known, i.For
	for _, change := range past {
		if len(v.Changes) == 0 && change.To == i.State && !known {
			known, lasted = true, now.Sub(change.at)
		}
		if len(v.Changes) < 8 {
			v.Changes = append(v.Changes, p.change(change, now))
		}
		if v.CutFor == nil && change.From == breaker.Closed && i.State != breaker.Closed {
			v.CutFor, v.CutReason = rounded(now.Sub(change.at)), change.Reason.String()
			v.RefusedSince, v.cut = v.Refused-actions(change.Counts.Totals, v.Shadow).Refused(), change.Counts
		}
	}
	if known {
		v.For = rounded(lasted)
	}
	return v
}

// rounded returns a duration in seconds, to the millisecond.
func rounded(d time.Duration) *float64 {
	seconds := math.Round(d.Seconds()*1000) / 1000
	return &seconds
}

// actions returns what a breaker did, or of a shadow what it would have done.
func actions(t breaker.Totals, shadow bool) breaker.Actions {
	if shadow {
		return t.Shadow
	}
	return t.Actions
}
