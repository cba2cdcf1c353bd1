package chart

import (
	"io"
	"slices"
	"time"
)

// Course is figures over time, a panel for each, one below the other.
type Course struct {
	Head
	Step   time.Duration // between two values
	Band   Band
	Series []Series
	Panels []Panel
}

// Band is a span of time to be seen behind the lines.
type Band struct {
	From, To time.Duration
	Name     string
}

// Panel is one figure.
type Panel struct {
	Title  string
	Most   float64     // of the axis; 0 is what the values need
	Values [][]float64 // by series; what is NaN is left out
}

// Write draws it.
func (c Course) Write(w io.Writer) error {
	const (
		width       = 860.0
		left, right = 64.0, margin
		height, gap = 132.0, 46.0
		top         = headRoom + 62
	)
	n := 0
	for _, p := range c.Panels {
		for _, v := range p.Values {
			n = max(n, len(v))
		}
	}
	whole := time.Duration(n) * c.Step
	x := func(at time.Duration) float64 { return left + (width-left-right)*float64(at)/float64(whole) }
	all := float64(len(c.Panels))*(height+gap) - gap

	d := newCanvas(width, top+all+52, c.Head)
	d.legend(left, headRoom+18, c.Series)
	banded := c.Band.To > c.Band.From
	for i, p := range c.Panels {
		base := top + float64(i)*(height+gap) + height
		most := p.Most
		if most == 0 {
			for _, v := range p.Values {
				most = max(most, slices.Max(append([]float64{0}, v...)))
			}
		}
		steps := ticks(most, 4)
		y := func(v float64) float64 { return base - height*min(v/steps[len(steps)-1], 1) }
		if banded {
			d.rect("band", x(c.Band.From), base-height-8, x(c.Band.To)-x(c.Band.From), height+8)
		}
		d.text("ink h2", left, base-height-16, p.Title)
		for _, t := range steps {
			class := "grid"
			if t == 0 {
				class = "axis"
			}
			d.line(class+" thin", left, y(t), width-right, y(t))
			d.text("soft end", left-8, y(t)+4, label(t))
		}
		for j, values := range p.Values {
			var points [][2]float64
			for k, v := range values {
				if v == v { // not a NaN
					points = append(points, [2]float64{x(time.Duration(k)*c.Step + c.Step/2), y(v)})
				}
			}
			if len(points) > 0 {
				d.path(c.Series[j].stroke()+" line", points)
			}
		}
	}
	if banded {
		d.text("soft mid", (x(c.Band.From)+x(c.Band.To))/2, top-14, c.Band.Name)
	}
	foot := top + all + 18
	for _, t := range ticks(whole.Seconds(), 6) {
		if at := time.Duration(t * float64(time.Second)); at <= whole {
			d.text("soft mid", x(at), foot, label(t))
		}
	}
	d.text("soft mid", left+(width-left-right)/2, foot+18, "seconds")
	return d.close(w)
}
