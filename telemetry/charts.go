package telemetry

import (
	"fmt"
	"time"
)

// The charts of the page, as numbers and words for the SVG in the template.

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
	text := fmt.Sprintf("%s%s, %d failed", when, several(p.Results, "result"), p.Failures)
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
		return "last " + several(v.config.Window.Calls, "result")
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
