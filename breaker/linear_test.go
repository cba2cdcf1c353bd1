package breaker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/mono"
)

// TestLinearizable runs clients at once and has porcupine look for an order of
// their operations in which a breaker that does one thing at a time would have
// said the same (B2, B3, B5, B6, B7, B10).
func TestLinearizable(t *testing.T) {
	for name, c := range map[string]Config{
		"row":   {Consecutive: 2},
		"calls": {Window: Window{Calls: 6}, MinCalls: 3, FailureRate: 0.5},
		"both":  {Window: Window{Calls: 5}, MinCalls: 4, FailureRate: 0.75, Consecutive: 3},
		"span":  {Window: Window{Span: 3 * time.Millisecond, Buckets: 3}, MinCalls: 4, FailureRate: 0.5, Consecutive: 4},
	} {
		c.Cooldown, c.MaxCooldown, c.CooldownFactor, c.Jitter = ms, 4*ms, 2, NoJitter
		c.ProbeSuccesses, c.ProbeTimeout = 2, 2*ms
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := 250
			if testing.Short() || raceEnabled {
				rounds = 50
			}
			for i := range rounds {
				history := linHistory(c, 6, 40)
				model := linModel(c)
				result, info := porcupine.CheckOperationsVerbose(model, history, 20*time.Second)
				if result == porcupine.Ok {
					continue
				}
				// The longest order found, and what had to come next.
				var longest []porcupine.Operation
				for _, part := range info.PartialLinearizationsOperations() {
					for _, ops := range part {
						if len(ops) > len(longest) {
							longest = ops
						}
					}
				}
				state, done := model.Init(), map[porcupine.Operation]bool{}
				for _, op := range longest {
					_, state = model.Step(state, op.Input, op.Output)
					done[op] = true
					t.Logf("%d %d-%d %+v %+v: %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output, state)
				}
				for _, op := range history {
					if !done[op] {
						t.Logf("left: %d %d-%d %+v %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
					}
				}
				require.Equal(t, porcupine.Ok, result, "round %d", i)
			}
		})
	}
}

type linIn struct {
	op      string
	now     mono.Instant
	gen     uint64 // of the ticket that ends
	lease   uint32
	verdict Verdict
	manual  bool // a window is brought up to the present as well
}

type linOut struct {
	admitted        bool
	gen             uint64
	lease           uint32
	results, failed int
	row             int
	probes          int
	state           State
}

func linHistory(c Config, clients, steps int) []porcupine.Operation {
	var stamp, clock atomic.Int64
	// Small steps keep what the window holds; with large ones probes come back and
	// leases run out.
	step := int64([]time.Duration{ms / 20, ms / 2}[rand.IntN(2)])
	r := compile(c)
	r.pause = func() {
		for range rand.IntN(4) {
			runtime.Gosched()
		}
	}
	b := newBreaker("lin", r, mono.Instant{})
	histories := make([][]porcupine.Operation, clients)
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			var held []*Ticket
			do := func(in linIn, f func(in linIn) linOut) {
				in.now = mono.Unpack(clock.Add(rand.Int64N(step)))
				if rand.IntN(8) == 0 {
					runtime.Gosched()
				}
				call := stamp.Add(1)
				out := f(in)
				op := porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: stamp.Add(1)}
				histories[client] = append(histories[client], op)
				if in.op != "look" && in.op != "counts" && (in.op != "done" || in.lease > 0) {
					// That a lease ran out is an event of its own, which an access
					// finds before it does what it came for, and an operator's command
					// moves the window on first. Another access may come in between:
					// one whose reading of the clock is older, or a reset, after which
					// even a call that found a lease over is admitted as any other.
					op.ClientId += clients
					op.Input, op.Output = linIn{op: "expire", now: in.now, gen: in.gen, manual: in.op != "admit" && in.op != "done"}, linOut{}
					histories[client] = append(histories[client], op)
				}
			}
			for range steps {
				n := rand.IntN(100)
				switch {
				case n < 45:
					do(linIn{op: "admit"}, func(in linIn) linOut {
						t, err := b.AllowAt(in.now)
						if err != nil {
							return linOut{}
						}
						held = append(held, &t)
						return linOut{admitted: true, gen: uint64(t.ep.generation()), lease: t.lease()}
					})
				case n < 90 && len(held) > 0:
					i := rand.IntN(len(held))
					t := held[i]
					held = append(held[:i], held[i+1:]...)
					v := []Verdict{Success, Failure, Failure, Neutral}[rand.IntN(4)]
					do(linIn{op: "done", gen: uint64(t.ep.generation()), lease: t.lease(), verdict: v}, func(in linIn) linOut {
						t.DoneAt(Outcome{Verdict: v}, in.now)
						return linOut{}
					})
				case n < 94:
					do(linIn{op: "look"}, func(in linIn) linOut {
						return linOut{state: b.StateAt(in.now)}
					})
				case n < 97:
					do(linIn{op: "counts"}, func(in linIn) linOut {
						c := b.countsAt(in.now)
						return linOut{results: c.Results, failed: c.Failures, row: c.Consecutive, probes: c.Probes}
					})
				default:
					op := []string{"force", "release", "release", "reset"}[rand.IntN(4)]
					do(linIn{op: op}, func(in linIn) linOut {
						switch op {
						case "force":
							b.forceOpen("", in.now)
						case "release":
							b.release(in.now)
						case "reset":
							b.reset(in.now)
						}
						return linOut{}
					})
				}
			}
		})
	}
	wg.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}

// linState is a breaker with one probe at a time, as a plain value.
type linState struct {
	state State
	gen   uint64

	row, n int
	last   [6]bool // failures, the latest first
	since  mono.Instant
	bucket int64
	total  [3]int // by bucket, the current first
	failed [3]int

	nth          int
	until, start mono.Instant
	lease        uint32 // in flight, or 0
	leases       uint32 // given out
	good         int
}

func (s *linState) enter(state State, at mono.Instant) {
	*s = linState{state: state, gen: s.gen + 1, nth: s.nth, since: at}
}

func (s *linState) open(c *Config, nth int, at mono.Instant) {
	s.enter(Open, at)
	s.nth = nth
	s.until = at.Add(min(c.Cooldown<<(nth-1), c.MaxCooldown))
}

func (s *linState) settle(c *Config, now mono.Instant) {
	if s.lease != 0 && now.Sub(s.start) >= c.ProbeTimeout {
		s.open(c, s.nth+1, s.start.Add(c.ProbeTimeout))
	}
}

func (s *linState) turn(c *Config, now mono.Instant) {
	if c.Window.Span == 0 {
		return
	}
	b := int64(now.Sub(s.since) / (c.Window.Span / time.Duration(c.Window.Buckets)))
	for ; s.bucket < b; s.bucket++ {
		s.total = [3]int{0, s.total[0], s.total[1]}
		s.failed = [3]int{0, s.failed[0], s.failed[1]}
	}
}

func (s *linState) window(c *Config) (total, failed int) {
	if c.Window.Span > 0 {
		return s.total[0] + s.total[1] + s.total[2], s.failed[0] + s.failed[1] + s.failed[2]
	}
	total = min(s.n, c.Window.Calls)
	for _, f := range s.last[:total] {
		if f {
			failed++
		}
	}
	return total, failed
}

func (s *linState) done(c *Config, in linIn) {
	if in.gen != s.gen {
		return
	}
	if in.lease != 0 {
		s.settle(c, in.now)
		if in.lease != s.lease {
			return
		}
		s.lease = 0
		switch in.verdict {
		case Failure:
			s.open(c, s.nth+1, in.now)
		case Success:
			if s.good++; s.good == c.ProbeSuccesses {
				s.enter(Closed, in.now)
			}
		}
		return
	}
	if in.verdict == Neutral {
		return
	}
	s.turn(c, in.now)
	failed := in.verdict == Failure
	s.last = [6]bool{failed, s.last[0], s.last[1], s.last[2], s.last[3], s.last[4]}
	s.n++
	s.total[0]++
	s.row++
	if failed {
		s.failed[0]++
	} else {
		s.row = 0
	}
	total, failures := s.window(c)
	if c.FailureRate > 0 && total >= c.MinCalls && float64(failures) >= c.FailureRate*float64(total) ||
		c.Consecutive > 0 && s.row >= c.Consecutive {
		s.open(c, 1, in.now)
	}
}

func (s *linState) admit(c *Config, now mono.Instant) linOut {
	s.settle(c, now)
	if s.state == Open && !now.Before(s.until) {
		s.enter(HalfOpen, now)
	}
	switch {
	case s.state == Closed:
		return linOut{admitted: true, gen: s.gen}
	case s.state == HalfOpen && s.lease == 0:
		s.leases++
		s.lease, s.start = s.leases, now
		return linOut{admitted: true, gen: s.gen, lease: s.lease}
	}
	return linOut{}
}

func linModel(c Config) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linState{} },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(linState), input.(linIn), output.(linOut)
			want := linOut{}
			switch in.op {
			case "admit":
				want = s.admit(&c, in.now)
			case "done":
				s.done(&c, in)
			case "look":
				twin := s
				twin.admit(&c, in.now)
				want.state = twin.state
			case "counts":
				want.row = s.row
				if s.state == Closed && c.Window != (Window{}) {
					twin := s
					twin.turn(&c, in.now)
					want.results, want.failed = twin.window(&c)
				}
				if s.lease != 0 {
					want.probes = 1
				}
			case "expire":
				if in.gen == 0 || in.gen == s.gen { // the end of an older probe looks at nothing
					s.settle(&c, in.now)
				}
				if in.manual {
					s.turn(&c, in.now)
				}
			case "force":
				s.settle(&c, in.now)
				if s.state != ForcedOpen {
					s.enter(ForcedOpen, in.now)
				}
			case "release":
				s.settle(&c, in.now)
				s.turn(&c, in.now)
				if s.state == ForcedOpen {
					s.open(&c, 1, in.now)
				}
			case "reset":
				s.settle(&c, in.now)
				s.enter(Closed, in.now)
			}
			return out == want, s
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(in, out any) string { return fmt.Sprint(in, out) },
	}
}
