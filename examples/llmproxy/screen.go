package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// legend explains the rows of a screen.
const legend = `Each letter is a request: A, B or C served it to its end with its large model, a, b or c with
its small one; with ! the stream broke off; - was refused, ? got no answer. Beside a row is the
time to the first token: the median of its requests, and the longest.
`

// rowTime is how long a row is written on.
const rowTime = 500 * time.Millisecond

// screen shows the story while it goes on: a mark for each request, in rows, and lines
// for what happens between them. The nil screen shows nothing.
type screen struct {
	out   io.Writer
	each  bool // a line for each request instead of the rows
	began time.Time

	row    strings.Builder
	since  time.Time // when the row began
	firsts []time.Duration
}

func (s *screen) begin() {
	if s == nil {
		return
	}
	s.began = time.Now()
	if !s.each {
		fmt.Fprint(s.out, legend)
	}
}

// request shows the n-th completion.
func (s *screen) request(n int, c completion) {
	switch {
	case s == nil:
		return
	case s.each:
		s.line("#%-4d %-8s first token %4d ms  %2d tokens  %s", n, c.by, c.first.Milliseconds(), c.tokens, c.end())
		return
	case s.row.Len() > 0 && time.Since(s.since) >= rowTime:
		s.flush()
	}
	if s.row.Len() == 0 {
		s.since = time.Now()
	}
	s.row.WriteString(c.mark())
	if c.tokens > 0 {
		s.firsts = append(s.firsts, c.first)
	}
}

// flush ends the row.
func (s *screen) flush() {
	if s == nil || s.row.Len() == 0 {
		return
	}
	row, firsts := s.row.String(), s.firsts
	s.row.Reset()
	s.firsts = nil
	if len(firsts) == 0 {
		s.line("%s", row)
		return
	}
	slices.Sort(firsts)
	s.line("%-72s %3d ms %4d ms", row, firsts[len(firsts)/2].Milliseconds(), firsts[len(firsts)-1].Milliseconds())
}

// part shows that a part of the story begins.
func (s *screen) part(text string) {
	if s == nil {
		return
	}
	s.flush()
	fmt.Fprintln(s.out)
	s.line("%s", text)
}

// line writes a line with the time.
func (s *screen) line(format string, args ...any) {
	if s == nil {
		return
	}
	s.flush()
	fmt.Fprintf(s.out, "%5.2f s  "+format+"\n", append([]any{time.Since(s.began).Seconds()}, args...)...)
}

// end says how a request ended.
func (c *completion) end() string {
	switch {
	case c.tokens == 0 && c.status == 0:
		return "no answer"
	case c.tokens == 0:
		return "refused"
	case !c.ok:
		return "broke off"
	}
	return "ok"
}

// mark is who served a request, and how it ended, in a character or two.
func (c *completion) mark() string {
	channel, model, _ := strings.Cut(c.by, "|")
	if model != models[0] {
		channel = strings.ToLower(channel)
	}
	switch c.end() {
	case "no answer":
		return "?"
	case "refused":
		return "-"
	case "broke off":
		return channel + "!"
	}
	return channel
}
