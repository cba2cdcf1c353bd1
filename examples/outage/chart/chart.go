// Package chart draws the figures of the outage as SVG: courses over time, bars,
// and lines over a logarithmic scale. A drawing follows the reader's preference for
// light or dark and needs nothing from elsewhere; the same data give the same
// bytes.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Head is what stands above a drawing.
type Head struct {
	Title string
	Note  string // a line below it; may be empty
}

// Palette is how many series have a colour of their own.
const Palette = 5

// The colours are told apart by lightness as well as by hue, so that they are also
// without either.
const style = `
  .paper { fill: #ffffff } .ink { fill: #1c2128 } .soft { fill: #57606a }
  .grid { stroke: #e4e8ec } .axis { stroke: #8c959f } .band { fill: #f1ece2 }
  .f0 { fill: #9aa2ac } .f1 { fill: #d9730d } .f2 { fill: #1f5fbf } .f3 { fill: #2d8a57 } .f4 { fill: #8250b0 }
  .s0 { stroke: #9aa2ac } .s1 { stroke: #d9730d } .s2 { stroke: #1f5fbf } .s3 { stroke: #2d8a57 } .s4 { stroke: #8250b0 }
  .whisker { stroke: #1c2128 } .mark { fill: #ffffff; stroke: #1c2128 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0f1319 } .ink { fill: #e6eaef } .soft { fill: #9ba5b0 }
    .grid { stroke: #262d36 } .axis { stroke: #6b7580 } .band { fill: #221f1a }
    .f0 { fill: #7d8792 } .f1 { fill: #f0994a } .f2 { fill: #6ea8ff } .f3 { fill: #62c08c } .f4 { fill: #bd93e6 }
    .s0 { stroke: #7d8792 } .s1 { stroke: #f0994a } .s2 { stroke: #6ea8ff } .s3 { stroke: #62c08c } .s4 { stroke: #bd93e6 }
    .whisker { stroke: #e6eaef } .mark { fill: #0f1319; stroke: #e6eaef }
  }
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-size: 12px }
  .h1 { font-size: 16px; font-weight: 600 } .h2 { font-size: 13px; font-weight: 600 } .b { font-weight: 600 }
  .end { text-anchor: end } .mid { text-anchor: middle }
  .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round }
  .dash { stroke-dasharray: 5 4 } .thin { stroke-width: 1 }
`

const (
	margin   = 24.0
	headRoom = 62.0 // with a note
)

// canvas collects elements.
type canvas struct {
	bytes.Buffer
	width, height float64
}

func newCanvas(width, height float64, h Head) *canvas {
	c := &canvas{width: width, height: height}
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" role="img" aria-labelledby="t d">`+"\n",
		num(width), num(height))
	fmt.Fprintf(c, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n<style>%s</style>\n", escape(h.Title), escape(h.Note), style)
	c.rect("paper", 0, 0, width, height)
	c.text("ink h1", margin, 32, h.Title)
	if h.Note != "" {
		c.text("soft", margin, 51, h.Note)
	}
	return c
}

func (c *canvas) close(w io.Writer) error {
	c.WriteString("</svg>\n")
	_, err := w.Write(c.Bytes())
	return err
}

func (c *canvas) rect(class string, x, y, width, height float64) {
	fmt.Fprintf(c, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`+"\n", class, num(x), num(y), num(width), num(height))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(c, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (c *canvas) dot(class string, x, y, r float64) {
	fmt.Fprintf(c, `<circle class="%s" cx="%s" cy="%s" r="%s"/>`+"\n", class, num(x), num(y), num(r))
}

func (c *canvas) text(class string, x, y float64, s string) {
	fmt.Fprintf(c, `<text class="%s" x="%s" y="%s">%s</text>`+"\n", class, num(x), num(y), escape(s))
}

func (c *canvas) path(class string, points [][2]float64) {
	var d strings.Builder
	for i, p := range points {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		d.WriteString(verb + num(p[0]) + " " + num(p[1]))
	}
	fmt.Fprintf(c, `<path class="%s" d="%s"/>`+"\n", class, d.String())
}

// legend writes the names of series in a row. The widths of the letters are
// estimated: a drawing cannot measure.
func (c *canvas) legend(x, y float64, series []Series) {
	for _, s := range series {
		c.line(s.stroke()+" line", x, y-4, x+22, y-4)
		c.text("ink", x+29, y, s.Name)
		x += 29 + textWidth(s.Name) + 22
	}
}

func textWidth(s string) float64 { return 6.3 * float64(len([]rune(s))) }

// Series names a line.
type Series struct {
	Name   string
	Colour int // from 0 to Palette-1; 0 is grey
	Dashed bool
}

func (s Series) stroke() string {
	class := "s" + strconv.Itoa(s.Colour%Palette)
	if s.Dashed {
		class += " dash"
	}
	return class
}

func (s Series) fill() string { return "f" + strconv.Itoa(s.Colour%Palette) }

// num writes a coordinate with as few digits as a screen can show.
func num(x float64) string {
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// ticks returns about n round steps from 0 to most, and the last at or above most.
func ticks(most float64, n int) []float64 {
	if most <= 0 {
		return []float64{0, 1}
	}
	raw := most / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * unit
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*unit >= raw*0.999 {
			step = m * unit
			break
		}
	}
	var at []float64
	for i := 0; ; i++ {
		at = append(at, float64(i)*step)
		if float64(i)*step >= most*0.999 {
			return at
		}
	}
}

// label writes a number for an axis.
func label(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
