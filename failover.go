package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/instance"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/retry"
)

// Failover is an attempt about to be made at another upstream than the one that the
// call turned to before.
type Failover struct {
	Info    call.Info   // with the upstream's name as its Target
	Attempt int         // its number in the call
	From    string      // the upstream before it
	After   call.Result // how the attempt there ended, or the refusal to make one
}

// walk is where a call stands in its list of upstreams. It stands inside Retry:
// what the retry policy takes for one attempt is a round here, a walk along the list
// without waits.
type walk struct {
	*Upstreams
	resource string // the call's own
	at       int    // the upstream whose turn it is
	instance int    // that the last attempt there had; -1 if it is the first there
	n        int    // the number of the attempt under way, over all rounds
	made     int    // attempts that were admitted
	forced   bool   // the attempt under way is made although all are closed off
	moving   bool   // from one upstream to the next
	asks     []ask  // what each upstream has asked for; nil if none has

	// Of the round under way.
	from    int         // the upstream before this one, -1 if it is the first
	before  call.Result // what became of the call there
	real    bool        // an attempt was admitted
	probing bool        // and all that were are probes
	last    call.Result // of the last that was
	refusal error       // that came after it, the one that is over soonest
}

// ask is a wish to be left alone until a moment.
type ask struct {
	asked, exact bool
	until        mono.Instant
}

func newWalk(u *Upstreams, resource string) *walk {
	return &walk{Upstreams: u, resource: resource, from: -1, instance: -1, n: 1}
}

// here returns info as it is at the upstream whose turn it is.
func (w *walk) here(info call.Info) call.Info { return w.there(w.at, info) }

// there returns info as it is at an upstream.
func (w *walk) there(at int, info call.Info) call.Info {
	u := &w.list[at]
	info.Target, info.Resource = u.Name, w.resource
	if u.Resource != "" {
		info.Resource = u.Resource
	}
	return info
}

// Begun returns what Info was before the call moved along its upstreams: the first
// one's name.
func (c *Call) Begun() call.Info {
	if c.walk == nil {
		return c.info
	}
	return c.walk.there(0, c.info)
}

// step is what follows on an attempt in a walk.
type step uint8

const (
	roundOver  step = iota // the retry policy is to say
	callOver               // there is no further attempt
	toUpstream             // another upstream has its turn
)

// walkOn decides what follows on res, the end of an attempt or the refusal to make
// one. If the round is over it returns the round's result.
func (c *Call) walkOn(ctx context.Context, res call.Result, prepare func(context.Context) error) (call.Result, step) {
	w := c.walk
	c.now = mono.Now()
	switch {
	case c.admitted:
		w.probing = c.probe && (w.probing || !w.real)
		w.real, w.last, w.refusal = true, res, nil
		w.hear(res, c.now)
	case res.Class == call.Refused:
		w.refusal = sooner(w.refusal, res.Err, c.now)
	default: // the caller is gone
		return res, roundOver
	}
	if c.movesOnFrom(res) {
		if next := c.nextUpstream(); next >= 0 {
			switch again, err := c.ready(ctx, prepare); {
			case err != nil:
				c.last, c.stopped = res, err
				return res, callOver
			case again:
				c.move(next, res)
				return res, toUpstream
			}
		}
	}
	if !w.real {
		return refused(w.refusal), roundOver
	}
	c.admitted, c.probe = true, w.probing
	return w.last, roundOver
}

// movesOnFrom reports whether another upstream may have its turn after res. Once
// something may have been sent it is a repeat, and follows its rules; but a probe may
// be followed by an attempt elsewhere, and so may the refusal of a kit further in.
func (c *Call) movesOnFrom(res call.Result) bool {
	switch {
	case c.walk.forced:
		return false // it was the last resort
	case res.Class == call.Refused:
		return true
	}
	return retry.Repeatable(res, c.info.Safety, c.keyed)
}

// nextUpstream returns the upstream that is next in the round, -1 if there is none.
// At the end of a list whose upstreams are all closed off that is the one to try in
// spite of it.
func (c *Call) nextUpstream() int {
	w := c.walk
	for i := w.at + 1; i < len(w.list); i++ {
		if !w.askedUntil(i).After(c.now) {
			return i
		}
	}
	if w.made > 0 {
		return -1
	}
	next := c.soonestOpen()
	w.forced = next >= 0
	return next
}

// ready reports whether the call still has the time for an attempt, and makes ready
// what it needs if one was made before.
func (c *Call) ready(ctx context.Context, prepare func(context.Context) error) (bool, error) {
	w := c.walk
	if !callerDone(ctx) && c.left() <= 0 {
		if w.real {
			w.refusal = retry.ErrNoTime
		}
		return false, nil
	}
	if c.admitted && prepare != nil {
		w.moving = true
		err := prepare(ctx)
		w.moving = false
		if err != nil && ctx.Err() == nil {
			return false, err
		}
	}
	return !callerDone(ctx), nil
}

// Moving reports whether the call is between two upstreams, where nothing is waited
// for.
func (c *Call) Moving() bool { return c.walk != nil && c.walk.moving }

// move makes it the turn of upstream i, after what became of the call at the one
// before. That may be the same one, which is tried although it has refused.
func (c *Call) move(i int, res call.Result) {
	if w := c.walk; i != w.at {
		w.from, w.before = w.at, res
	}
	c.turn(i)
}

func (c *Call) turn(i int) {
	w := c.walk
	if i != w.at {
		w.instance = -1
	}
	w.at, w.n = i, w.made+1
	c.now = mono.Now()
	c.info = w.here(c.info)
	c.state = c.method.state(&c.info, c.now)
}

// beginRound begins another walk along the list.
func (c *Call) beginRound() {
	w := c.walk
	w.from, w.before, w.real, w.refusal, w.forced = -1, call.Result{}, false, nil, false
	first := 0
	for i := range w.list {
		if !w.askedUntil(i).After(c.now) {
			first = i
			break
		}
	}
	c.turn(first)
}

// noteHop notes that the attempt was admitted, and tells of it.
func (c *Call) noteHop(ctx context.Context, a *Attempt) {
	w := c.walk
	w.made++
	if c.attempts > 1 && !w.real {
		c.tellRetry(ctx, a)
	}
	if w.from >= 0 {
		c.tellFailover(ctx, a)
	}
}

// tellFailover tells of an attempt that was admitted at another upstream. Should the
// hook panic, the attempt is given up unsent.
func (c *Call) tellFailover(ctx context.Context, a *Attempt) {
	w := c.walk
	if h := c.hooks.Failover; h != nil {
		told := false
		defer c.giveUpUnless(ctx, a, &told)
		h(ctx, Failover{Info: c.info, Attempt: w.n, From: w.list[w.from].String(), After: w.before})
		told = true
	}
	if c.tally != nil {
		c.tally.failovers.Add()
	}
}

// Upstream returns the index in the list of the upstream whose turn it is.
func (c *Call) Upstream() int { return c.walk.at }

// Instance returns the index of the upstream's instance that the last attempt was
// for, in the order in which they were named; 0 if the upstream has no instances.
func (c *Call) Instance() int { return max(c.walk.instance, 0) }

// hop is what an attempt at one of several upstreams holds beside the rest.
type hop struct {
	tries *forcedTry // nil if it is none
	try   uint64     // which of them
	pick  instance.Pick
}

// answered ends what waits for the answer.
func (h *hop) answered() {
	h.pick.Answered()
	if h.tries != nil {
		h.tries.end(h.try)
	}
}

// pick chooses an instance for an attempt that was admitted. Should a hook of theirs
// panic, the attempt is given up unsent.
func (c *Call) pick(ctx context.Context, a *Attempt) {
	w := c.walk
	set := w.list[w.at].Instances
	if set == nil {
		return
	}
	if a.hop == nil {
		a.hop = new(hop)
	}
	told := false
	defer c.giveUpUnless(ctx, a, &told)
	a.hop.pick.Take(set, w.instance, c.limits.Attempt, mono.Now())
	told = true
	w.instance = a.hop.pick.Index()
}

// settle books the end of the attempt with the instance, and with the service. That an
// instance which was left out is still bad is no news of the others.
func (h *hop) settle(service *breaker.Pair, end breaker.Outcome, now mono.Instant) {
	defer h.pick.Done(end, now) // also if a hook panics
	if h.tries != nil {
		h.tries.end(h.try)
	}
	if h.pick.Trial() && end.Verdict == breaker.Failure {
		end.Verdict = breaker.Neutral
	}
	service.DoneAt(end, now)
}
