package breaker

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/enum"
)

// Hooks are called when something happens to a breaker. Each may be nil.
//
// They run outside every lock, on the goroutine of the call that found out or
// of one that found out something else at the same time. Transition,
// ProbeEnded and ProbeFailed of one breaker are called one at a time and in the
// order of what they tell. All methods of the breaker may be called from them;
// what such a call causes is told after the hook has returned. A hook that
// panics leaves the breaker in order: the panic goes on to the caller once
// everything else has been told.
type Hooks struct {
	// Transition tells of a change of state.
	Transition func(Transition)

	// ProbeEnded tells the end of every probe, before the change of state that
	// it may cause.
	ProbeEnded func(ProbeEnd)

	// ProbeFailed tells the end of a probe that speaks against the dependency;
	// it is called after ProbeEnded.
	ProbeFailed func(ProbeEnd)

	// Refused tells of a call refused, or in a shadow of one that would have
	// been. It is called before the caller learns of it.
	Refused func(*OpenError)
}

// Transition is one change of state. The From of each is the To of the one
// before.
type Transition struct {
	Key      string
	From, To State
	Reason   Reason

	// Note is the reason given to ForceOpen.
	Note string

	// Generation is the number of the state entered; it grows with every
	// transition.
	Generation uint64

	// Cooldown is how long the breaker will be open, if To is Open.
	Cooldown time.Duration

	// Counts are those of the state left, at its end.
	Counts Counts

	// Shadow says that the breaker refuses nothing, see [Config.Shadow].
	Shadow bool
}

// ProbeOutcome is how a probe ended.
type ProbeOutcome uint8

// The outcomes of a probe.
const (
	_ ProbeOutcome = iota

	// ProbeSucceeded: it was answered well, and soon enough.
	ProbeSucceeded

	// ProbeFailed: it failed or was throttled.
	ProbeFailed

	// ProbeSlow: it was answered well, but took longer than ProbeLatency.
	ProbeSlow

	// ProbeExpired: it was not answered within ProbeTimeout.
	ProbeExpired

	// ProbeNeutral: its end said nothing; the next call may be a probe.
	ProbeNeutral
)

var probeNames = []string{"none", "succeeded", "failed", "slow", "expired", "neutral"}

// String returns the outcome in lower snake case.
func (o ProbeOutcome) String() string { return enum.Name(probeNames, o, "probe") }

// Failed reports whether the probe spoke against the dependency.
func (o ProbeOutcome) Failed() bool {
	return o == ProbeFailed || o == ProbeSlow || o == ProbeExpired
}

// reason is why the breaker opens after o.
func (o ProbeOutcome) reason() Reason {
	switch o {
	case ProbeSlow:
		return ReasonProbeSlow
	case ProbeExpired:
		return ReasonProbeExpired
	}
	return ReasonProbeFailed
}

// ProbeEnd is the end of one probe.
type ProbeEnd struct {
	Key        string
	Outcome    ProbeOutcome
	Generation uint64        // of the half-open state
	Took       time.Duration // to the answer, the end, or the end of the lease
	Shadow     bool          // the breaker refuses nothing
}

// change moves on from old to next; b.mu is held.
func (b *Breaker) change(old, next *episode, why Reason, note string) {
	if old.rules.pause != nil {
		old.rules.pause()
	}
	old.sum.Or(dead)
	if old.rules.fleet != nil && old.state() == HalfOpen {
		b.unlockProbes(old)
	}
	next.follow(old, 1)
	if next.out != nil {
		next.out.err.why = why
	}
	b.now.Store(next)
	hook := old.rules.cfg.Hooks.Transition
	if hook == nil {
		return
	}
	t := Transition{
		Key: b.key, From: old.state(), To: next.state(), Reason: why, Note: note,
		Generation: uint64(next.generation()), Counts: b.counts(old, old.sum.Load()), Shadow: old.rules.cfg.Shadow,
	}
	if next.state() == Open {
		t.Cooldown = next.out.lasts
	}
	b.queue(func() { hook(t) })
}

// queueProbe notes the end of a probe for the hooks; b.mu is held.
func (b *Breaker) queueProbe(ep *episode, how ProbeOutcome, took time.Duration) {
	hooks := &ep.rules.cfg.Hooks
	end := ProbeEnd{Key: b.key, Outcome: how, Generation: uint64(ep.generation()), Took: took, Shadow: ep.rules.cfg.Shadow}
	if hook := hooks.ProbeEnded; hook != nil {
		b.queue(func() { hook(end) })
	}
	if hook := hooks.ProbeFailed; hook != nil && how.Failed() {
		b.queue(func() { hook(end) })
	}
}

func (b *Breaker) queue(event func()) {
	m := b.extra()
	m.events = append(m.events, event)
}

// unlock releases b.mu and then tells the hooks what happened while it was
// held, unless somebody is at it, who then does that too.
func (b *Breaker) unlock() {
	m := b.more.Load()
	mine := m != nil && len(m.events) > 0 && !m.delivering
	if mine {
		m.delivering = true
	}
	b.mu.Unlock()
	if mine {
		b.deliver(m)
	}
}

// tell calls the hooks with what happened while b.mu was held.
func (b *Breaker) tell() {
	b.mu.Lock()
	b.unlock()
}

// tellAll is tell for several.
func tellAll(all []*Breaker) {
	for _, b := range all {
		defer b.tell() // though the hook of another may panic
	}
}

// deliver calls the hooks until there is nothing left to tell, also if one
// panics or ends the goroutine.
func (b *Breaker) deliver(m *more) {
	finished := false
	defer func() {
		if !finished {
			b.deliver(m)
		}
	}()
	for {
		b.mu.Lock()
		if len(m.events) == 0 {
			m.events = nil
			m.delivering = false
			finished = true
			b.mu.Unlock()
			return
		}
		event := m.events[0]
		m.events = m.events[1:]
		b.mu.Unlock()
		event()
	}
}

// unlockKeeping is unlock for a caller that is about to hand out a probe: if a
// hook panics the probe is never made.
func (b *Breaker) unlockKeeping(ep *episode, id uint32) {
	b.unlockOr(func() { b.dropProbe(ep, id) })
}

// unlockOr is unlock for a caller that goes on with something it has taken: if a
// hook panics or ends the goroutine it does not, and undo gives that back.
func (b *Breaker) unlockOr(undo func()) {
	goesOn := false
	defer func() {
		if !goesOn {
			undo()
		}
	}()
	b.unlock()
	goesOn = true
}
