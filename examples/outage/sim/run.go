package sim

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/mono"
)

const forever time.Duration = math.MaxInt64

var errServer = errors.New("sim: the dependency failed")

// run is one run under way.
type run struct {
	seed       uint64
	setup      Setup
	clock      clock
	dependency Dependency
	callers    []*caller
	figures    Figures
	mu         sync.Mutex // of figures.Transitions
	trace      *Trace

	jitter, backoff Chance // of cooldowns, and of waits between attempts
}

// The streams of random numbers of a run. Each has its own, so that requests
// arrive alike whatever the client does.
const (
	jitterStream = iota
	backoffStream
	dependencyStream
	firstCaller // then two for each caller

	firstShared = 1 << 32 // then two for each caller that shares
)

func stream(seed, n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }

// Run takes a client through a setup. The trace, if not nil, is filled in.
func Run(seed uint64, s Setup, c Client, trace *Trace) (Figures, error) {
	r := &run{
		seed: seed, setup: s, clock: clock{start: s.Start}, trace: trace,
		jitter:  stream(seed, jitterStream).Float64,
		backoff: stream(seed, backoffStream).Float64,
	}
	r.dependency = s.Dependency(stream(seed, dependencyStream).Float64)
	for i := range max(s.Callers, 1) {
		threads, err := bulkhead.New("threads", bulkhead.Config{Limit: s.Threads})
		if err != nil {
			return Figures{}, err
		}
		k, err := r.newKit(c, i)
		if err != nil {
			return Figures{}, err
		}
		caller := &caller{run: r, kit: k, threads: threads}
		caller.a, caller.b = of(seed, s, i)
		r.callers = append(r.callers, caller)
		caller.a.plan(caller, (*request).arriveA)
		caller.b.plan(caller, (*request).arriveB)
	}
	for e, ok := r.clock.next(); ok; e, ok = r.clock.next() {
		if s.Before != nil {
			s.Before(r.clock.instant())
		}
		e.do(e.who)
		if s.After != nil {
			s.After()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.figures.Transitions, func(a, b Transition) int { return cmp.Compare(a.At, b.At) })
	return r.figures, nil
}

// elapsed returns the time since the run began, by the clock that others read if there
// is one.
func (r *run) elapsed() time.Duration {
	if r.setup.Before != nil {
		return mono.Now().Sub(r.clock.start)
	}
	return r.clock.now
}

// inOutage reports whether it is the time that is looked at.
func (r *run) inOutage(at time.Duration) bool { return at >= r.setup.From && at < r.setup.To }

// caller is one process with its threads.
type caller struct {
	run     *run
	kit     *kit
	threads *bulkhead.Bulkhead
	a, b    arrivals
}

// plan plans the next arrival.
func (p *arrivals) plan(c *caller, do func(*request)) {
	if at, ok := p.next(c.run.setup.Lasts); ok {
		c.run.clock.at(at, do, &request{caller: c})
	}
}

func (q *request) arriveA() {
	c := q.caller
	c.a.plan(c, (*request).arriveA)
	f := &c.run.figures
	f.A++
	if c.run.inOutage(c.run.clock.now) {
		f.AInOutage++
	}
	if !c.takeThread(q) {
		f.ARejected++
		c.run.tellEnd(Rejected)
		return
	}
	q.kitCall = &kitCall{kit: c.kit}
	q.begin()
}

func (q *request) arriveB() {
	c := q.caller
	c.b.plan(c, (*request).arriveB)
	counted, served := c.run.inOutage(c.run.clock.now), c.takeThread(q)
	f := &c.run.figures
	if counted {
		f.BArrived++
	}
	c.run.trace.b(c.run.clock.now, served)
	if !served {
		return
	}
	if counted {
		f.BServed++
	}
	c.run.clock.at(c.run.clock.now+c.run.setup.BTakes, (*request).giveThreadBack, q)
}

func (c *caller) takeThread(q *request) bool {
	if !q.thread.Try(c.threads, nil) {
		return false
	}
	c.run.trace.threads(c.run.clock.now, 1)
	c.run.figures.ThreadsMost = max(c.run.figures.ThreadsMost, c.threads.InUse())
	return true
}

func (q *request) giveThreadBack() {
	q.thread.Release()
	q.caller.run.trace.threads(q.caller.run.clock.now, -1)
}

// send hands an attempt to the dependency.
func (c *caller) send(probe bool) Answer {
	r, now := c.run, c.run.clock.now
	f := &r.figures
	f.Attempts++
	if r.inOutage(now) {
		f.Downstream++
		if probe {
			f.Probes++
		}
	} else if probe && now >= r.setup.To && now < r.setup.To+Afterwards {
		f.ProbesAfter++
	}
	r.trace.sent(now, probe)
	return r.dependency.Answer(now)
}

// done counts the end of an A.
func (c *caller) done(q *request) {
	q.giveThreadBack()
	f := &c.run.figures
	end := Failed
	switch {
	case q.last.Class == call.OK:
		end = OK
		f.AOK++
	case q.last.Class == call.Refused || isRefusal(q.stopped):
		end = FastFail
		f.AFastFail++
	default:
		f.AFailed++
	}
	c.run.tellEnd(end)
}

// isRefusal reports whether a call ended because a breaker or a bulkhead would not
// have another attempt.
func isRefusal(err error) bool {
	return err != nil && (errors.Is(err, breaker.ErrOpen) || errors.Is(err, bulkhead.ErrFull))
}
