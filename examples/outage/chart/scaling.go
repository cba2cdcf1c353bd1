package chart

import (
	"io"
	"math"
)

// Scaling is figures over a size, both on logarithmic scales.
type Scaling struct {
	Head
	Series      []Series
	Sizes       []float64
	Values      [][]float64 // by series, then by size; above 0
	XName       string
	YName       string
	Text        func(float64) string // of a value
	LabelsBelow []bool               // by series: its numbers stand below its points
}

// Write draws it.
func (s Scaling) Write(w io.Writer) error {
	const (
		width       = 860.0
		left, right = 74.0, 60.0
		height      = 300.0
		top         = headRoom + 62
	)
	low, high := math.Inf(1), math.Inf(-1)
	for _, line := range s.Values {
		for _, v := range line {
			low, high = min(low, math.Log10(v)), max(high, math.Log10(v))
		}
	}
	low, high = math.Floor(low), math.Ceil(high)
	first, last := math.Log10(s.Sizes[0]), math.Log10(s.Sizes[len(s.Sizes)-1])
	const inset = 36.0
	x := func(size float64) float64 {
		return left + inset + (width-left-right-2*inset)*(math.Log10(size)-first)/(last-first)
	}
	y := func(v float64) float64 { return top + height*(high-math.Log10(v))/(high-low) }

	d := newCanvas(width, top+height+56, s.Head)
	d.legend(margin, headRoom+14, s.Series)
	d.text("ink h2", left, top-16, s.YName)
	for e := low; e <= high; e++ {
		at := y(math.Pow(10, e))
		d.line("grid thin", left, at, width-right, at)
		d.text("soft end", left-8, at+4, label(math.Pow(10, e)))
	}
	d.line("axis thin", left, top+height, width-right, top+height)
	for i, line := range s.Values {
		var points [][2]float64
		for j, v := range line {
			points = append(points, [2]float64{x(s.Sizes[j]), y(v)})
		}
		d.path(s.Series[i].stroke()+" line", points)
		shift := -10.0
		if s.LabelsBelow[i] {
			shift = 19
		}
		for j, p := range points {
			d.dot(s.Series[i].fill(), p[0], p[1], 3.5)
			d.text("soft mid", p[0], p[1]+shift, s.Text(line[j]))
		}
	}
	for _, size := range s.Sizes {
		d.text("soft mid", x(size), top+height+18, label(size))
	}
	d.text("soft mid", left+(width-left-right)/2, top+height+38, s.XName)
	return d.close(w)
}
