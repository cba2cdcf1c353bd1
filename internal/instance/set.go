// Package instance keeps the instances behind one name: which of them are ejected, by
// the rules of package outlier, and which one the next call is for.
package instance

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/mono"
	"github.com/holdfast-go/holdfast/outlier"
)

// Max is the number of instances in a Set at most.
const Max = 64

// Set is the instances behind one name. It is safe for concurrent use.
type Set struct {
	members []member
	trial   time.Duration // TrialTimeout
	most    int           // that may be ejected
	turn    atomic.Uint64 // whose turn it is among those with equally little to do
}

// member is one instance.
type member struct {
	breaker  *breaker.Breaker
	inFlight atomic.Int64
}

// New returns a set of instances, of which none is ejected. The error names every
// fault of c, and every name that is empty or not the only one of its kind.
func New(c outlier.Config, names ...string) (*Set, error) {
	faults := check.Of(c.Check())
	if len(names) == 0 || len(names) > Max {
		faults.Add("names", len(names), "there must be 1 to %d", Max)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if name == "" {
			faults.Add("names", nil, "one is empty")
		} else if seen[name] {
			faults.Add("names", name, "is there twice")
		}
		seen[name] = true
	}
	if err := faults.Err("outlier"); err != nil {
		return nil, err
	}
	s := &Set{members: make([]member, len(names)), trial: c.TrialTimeout, most: len(names) - 1}
	if c.MaxEjected > 0 {
		s.most = min(s.most, c.MaxEjected)
	}
	for i, name := range names {
		b, err := breaker.New(name, rules(c))
		if err != nil {
			return nil, err
		}
		s.members[i].breaker = b
	}
	return s, nil
}

// Len returns the number of instances.
func (s *Set) Len() int { return len(s.members) }

// Instance is what is known of one instance.
type Instance struct {
	Name     string
	Ejected  bool // it gets no calls, or one trial
	InFlight int  // calls under way
}

// Instances tells of all instances, in the order of their names in New.
func (s *Set) Instances() []Instance {
	all := make([]Instance, len(s.members))
	for i := range s.members {
		m := &s.members[i]
		state := m.breaker.State()
		all[i] = Instance{m.breaker.Name(), state == breaker.Open || state == breaker.HalfOpen, int(m.inFlight.Load())}
	}
	return all
}

// Pick is one call's instance. The zero Pick is none. It has one owner at a time and
// must not be copied.
type Pick struct {
	set    *Set // nil once done
	index  int
	trial  bool
	ticket breaker.Ticket
}

// Take picks the instance for a call: of those that are not ejected the one with
// the least in flight, in turn where several have equally little. avoid is the index
// of one that is picked only if there is no other, -1 for none; limit is that of the
// call, for a trial of which the Config says none, 0 for none. p is the zero Pick.
func (p *Pick) Take(s *Set, avoid int, limit time.Duration, now mono.Instant) {
	for usable, surplus := s.usable(now); usable|surplus != 0; {
		p.index = s.choose(usable|surplus, avoid)
		this := uint64(1) << p.index
		if surplus&this == 0 {
			var err error
			if p.ticket, err = s.members[p.index].breaker.AllowAt(now); err != nil {
				usable &^= this // somebody else was sooner: it is ejected, or on trial
				if usable|surplus == 0 {
					break // what was the last one is used all the same
				}
				continue
			}
			if p.trial = p.ticket.Probe(); p.trial && s.trial == 0 && limit > 0 {
				p.ticket.LastsAt(limit, now)
			}
		}
		break
	}
	p.set = s // not before: a hook may panic, and p is none then
	s.members[p.index].inFlight.Add(1)
}

// usable returns the instances that are not ejected, and those that are but have to
// be used since too many are. Each bit is one instance.
func (s *Set) usable(now mono.Instant) (usable, surplus uint64) {
	var out uint64
	for i := range s.members {
		if s.members[i].breaker.RefusalAt(now) != nil {
			out |= 1 << i
		} else {
			usable |= 1 << i
		}
	}
	for bits.OnesCount64(out&^surplus) > s.most {
		surplus |= 1 << s.soonest(out&^surplus, now)
	}
	return usable, surplus
}

// soonest returns the ejected instance whose time is over first.
func (s *Set) soonest(out uint64, now mono.Instant) int {
	best, least := -1, time.Duration(0)
	for ; out != 0; out &= out - 1 {
		i := bits.TrailingZeros64(out)
		left := time.Duration(0)
		if refusal, ok := s.members[i].breaker.RefusalAt(now).(*breaker.OpenError); ok {
			left = refusal.RetryAfterAt(now)
		}
		if best < 0 || left < least {
			best, least = i, left
		}
	}
	return best
}

// choose returns one of the instances of a set that is not empty.
func (s *Set) choose(among uint64, avoid int) int {
	var turn uint64
	if avoid >= 0 && among&^(1<<avoid) != 0 {
		among &^= 1 << avoid
		turn = s.turn.Load() // a call out of the row: the row goes on where it was
	} else {
		turn = s.turn.Add(1) - 1
	}
	var candidates [Max]int
	n := 0
	for ; among != 0; among &= among - 1 {
		candidates[n] = bits.TrailingZeros64(among)
		n++
	}
	best, least := -1, int64(0)
	for i := range uint64(n) {
		at := candidates[(turn+i)%uint64(n)]
		if busy := s.members[at].inFlight.Load(); best < 0 || busy < least {
			best, least = at, busy
		}
	}
	return best
}

// Index returns which instance it is, in the order of their names in New.
func (p *Pick) Index() int { return p.index }

// Trial reports whether the call is the trial of an instance that was ejected. It
// speaks for that instance, and its failure not against the service.
func (p *Pick) Trial() bool { return p.trial }

// Answered tells that the instance has begun to answer.
func (p *Pick) Answered() { p.ticket.Answered() }

// Done books the end of the call. A second Done does nothing.
func (p *Pick) Done(o breaker.Outcome, now mono.Instant) {
	if p.set == nil {
		return
	}
	p.set.members[p.index].inFlight.Add(-1)
	p.set = nil
	p.ticket.DoneAt(o, now)
}
