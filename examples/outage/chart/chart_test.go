package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/outage/chart"
)

type drawing interface{ Write(io.Writer) error }

var head = chart.Head{Title: "A < B & \"C\"", Note: "a note"}

func drawings() map[string]drawing {
	mark := 0.7
	return map[string]drawing{
		"course": chart.Course{
			Head: head, Step: time.Second, Band: chart.Band{From: time.Second, To: 2 * time.Second, Name: "out"},
			Series: []chart.Series{{Name: "one"}, {Name: "two", Colour: 2, Dashed: true}},
			Panels: []chart.Panel{
				{Title: "threads", Most: 40, Values: [][]float64{{1, 2, 50}, {0, math.NaN(), 3}}},
				{Title: "nothing", Values: [][]float64{{}, {}}},
			},
		},
		"bars": chart.Bars{
			Head: head, Mark: "mark", Range: "range",
			Rows: []chart.BarRow{{Name: "<a>"}, {Name: "b", Strong: true, Apart: true, Colour: 2}},
			Columns: []chart.BarColumn{{
				Title: "share", Most: 1, Text: func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) },
				Bars: []chart.Bar{{Value: 0.5, Low: 0.4, High: 0.6, Mark: &mark}, {}},
			}},
		},
		"scaling": chart.Scaling{
			Head: head, Series: []chart.Series{{Name: "s"}}, Sizes: []float64{1, 10, 100}, Values: [][]float64{{0.5, 5, 50}},
			XName: "x", YName: "y", Text: func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }, LabelsBelow: []bool{true},
		},
	}
}

// A drawing is well-formed, stands by itself, has a title for those who do not see
// it, and lies within its bounds.
func TestADrawingIsWellFormedAndWithinItsBounds(t *testing.T) {
	for name, d := range drawings() {
		var out bytes.Buffer
		require.NoError(t, d.Write(&out), name)
		text := out.String()
		require.Contains(t, text, "prefers-color-scheme: dark")
		require.Contains(t, text, "A &lt; B &amp; &#34;C&#34;")
		require.NotContains(t, text, "NaN")
		require.NotContains(t, text, "Inf")
		require.NotContains(t, strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), "http")

		var width, height float64
		decoder := xml.NewDecoder(&out)
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			for _, a := range start.Attr {
				v, err := strconv.ParseFloat(a.Value, 64)
				if err != nil {
					continue
				}
				switch {
				case start.Name.Local == "svg" && a.Name.Local == "width":
					width = v
				case start.Name.Local == "svg" && a.Name.Local == "height":
					height = v
				case strings.HasPrefix(a.Name.Local, "x") || a.Name.Local == "cx":
					require.True(t, v >= 0 && v <= width, "%s: %s %v", name, a.Name.Local, v)
				case strings.HasPrefix(a.Name.Local, "y") || a.Name.Local == "cy":
					require.True(t, v >= 0 && v <= height, "%s: %s %v", name, a.Name.Local, v)
				}
			}
		}
		require.Positive(t, width*height, name)

		var again bytes.Buffer
		require.NoError(t, d.Write(&again))
		require.Equal(t, text, again.String())
	}
}

// What is above the axis is drawn at its top, and what is missing leaves the line
// whole.
func TestALineStaysWithinItsPanel(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, drawings()["course"].Write(&out))
	require.Equal(t, 2, strings.Count(out.String(), "<path"), "an empty series has no line")
}

func TestAWritersErrorComesBack(t *testing.T) {
	full := errors.New("full")
	for name, d := range drawings() {
		require.ErrorIs(t, d.Write(failing{full}), full, name)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
