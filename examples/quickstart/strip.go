package main

import (
	"strings"
	"sync/atomic"
	"time"
)

// stripWidth is how many characters a run is drawn with.
const stripWidth = 40

// strip is a run as one line of text: a character for each part of its time, by
// how the calls ended that ended then.
type strip struct {
	total time.Duration
	cells [stripWidth][outcomes]atomic.Int64
}

func newStrip(total time.Duration) *strip { return &strip{total: total} }

func (s *strip) add(done sample) {
	s.cells[s.cell(done.end)][done.outcome].Add(1)
}

func (s *strip) cell(at time.Duration) int {
	return min(int(at*stripWidth/s.total), stripWidth-1)
}

// legend explains what String draws.
const legend = "+ at least 99 % succeed   x most others fail   - most others are refused   . no call ends"

// String draws the run.
func (s *strip) String() string {
	var b strings.Builder
	for i := range s.cells {
		good, bad, turned := s.cells[i][ok].Load(), s.cells[i][failed].Load(), s.cells[i][refused].Load()
		switch all := good + bad + turned; {
		case all == 0:
			b.WriteByte('.')
		case good*100 >= all*recoveryPercent:
			b.WriteByte('+')
		case bad > turned:
			b.WriteByte('x')
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

// counts returns how many calls have ended in each way.
func (s *strip) counts() (n [outcomes]int64) {
	for i := range s.cells {
		for o := range n {
			n[o] += s.cells[i][o].Load()
		}
	}
	return n
}

// ruler names the phases above a strip.
func ruler(p plan) string {
	s := newStrip(p.total())
	line := []byte(strings.Repeat(" ", stripWidth))
	for _, phase := range []struct {
		at   time.Duration
		name string
	}{{0, "up"}, {p.healthy, "silent"}, {p.healthy + p.silent, "up again"}} {
		copy(line[s.cell(phase.at):], "|"+phase.name)
	}
	return string(line)
}
