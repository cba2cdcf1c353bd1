package chart

import "io"

// Bars is figures across configurations: a row for each of those, and a column for
// each figure.
type Bars struct {
	Head
	Rows    []BarRow
	Columns []BarColumn
	Mark    string // what the marks are; "" is none
	Range   string // what the whiskers are
}

// BarRow is a configuration.
type BarRow struct {
	Name   string
	Colour int
	Strong bool // the one to look at
	Apart  bool // with some room above it
}

// BarColumn is a figure.
type BarColumn struct {
	Title string
	Most  float64 // of the axis; 0 is what the bars need
	Bars  []Bar   // by row
	Text  func(float64) string
}

// Bar is one value with its range.
type Bar struct {
	Value, Low, High float64
	Mark             *float64
}

// Write draws it.
func (b Bars) Write(w io.Writer) error {
	const (
		width       = 860.0
		left, right = 222.0, margin
		pitch, tall = 25.0, 13.0
		gap, value  = 40.0, 46.0 // between columns, and for the number after a bar
		top         = headRoom + 40
		apart       = 12.0
	)
	at := make([]float64, len(b.Rows))
	y := top
	for i, r := range b.Rows {
		if r.Apart {
			y += apart
		}
		at[i] = y + pitch/2
		y += pitch
	}
	foot := y + 6
	d := newCanvas(width, foot+54, b.Head)
	for i, r := range b.Rows {
		class := "ink end"
		if r.Strong {
			class += " b"
		}
		d.text(class, left-12, at[i]+4, r.Name)
	}
	room := (width - left - right - gap*float64(len(b.Columns)-1)) / float64(len(b.Columns))
	for i, c := range b.Columns {
		x0 := left + float64(i)*(room+gap)
		most := c.Most
		for _, v := range c.Bars {
			if c.Most == 0 {
				most = max(most, v.High, v.Value)
			}
		}
		steps := ticks(most, 4)
		x := func(v float64) float64 { return x0 + (room-value)*v/steps[len(steps)-1] }
		d.text("ink h2", x0, top-14, c.Title)
		for _, t := range steps {
			class := "grid"
			if t == 0 {
				class = "axis"
			}
			d.line(class+" thin", x(t), top, x(t), foot)
			d.text("soft mid", x(t), foot+16, label(t))
		}
		for j, v := range c.Bars {
			r := b.Rows[j]
			d.rect(Series{Colour: r.Colour}.fill(), x0, at[j]-tall/2, x(v.Value)-x0, tall)
			if v.High > v.Low {
				d.line("whisker thin", x(v.Low), at[j], x(v.High), at[j])
				for _, end := range []float64{v.Low, v.High} {
					d.line("whisker thin", x(end), at[j]-3, x(end), at[j]+3)
				}
			}
			end := max(v.Value, v.High)
			if v.Mark != nil {
				d.dot("mark", x(*v.Mark), at[j], 3.5)
				end = max(end, *v.Mark)
			}
			class := "soft"
			if r.Strong {
				class = "ink b"
			}
			d.text(class, x(end)+8, at[j]+4, c.Text(v.Value))
		}
	}
	x := left
	if b.Mark != "" {
		d.dot("mark", x+4, foot+36, 3.5)
		d.text("soft", x+14, foot+40, b.Mark)
		x += 14 + textWidth(b.Mark) + 24
	}
	if b.Range != "" {
		d.line("whisker thin", x, foot+36, x+20, foot+36)
		d.line("whisker thin", x, foot+33, x, foot+39)
		d.line("whisker thin", x+20, foot+33, x+20, foot+39)
		d.text("soft", x+28, foot+40, b.Range)
	}
	return d.close(w)
}
