package telemetry

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/breaker"
)

// ledger shares out what a kit's breakers have counted among the series of an
// instrument, so that none of them falls while it is there, nor their sum ever.
//
// What a breaker counts goes to the account of its key, if that has one, and else to
// the others; it stays there, whatever becomes of the breaker. The account of a key
// that has no breaker any more is closed: what it held goes to the evicted. An account
// on which nothing was counted yet has no claim to its place, which is how those in
// trouble come to have accounts of their own.
type ledger struct {
	most     int                        // accounts
	accounts map[string]*breaker.Totals // by key
	other    breaker.Totals             // of breakers without an account
	evicted  breaker.Totals             // of closed accounts, and of what nobody saw counted
	others   bool                       // there is a breaker without an account
	round    int
	last     map[*breaker.Breaker]entry // what each breaker had when last seen, if anything
}

type entry struct {
	breaker.Totals
	round int
}

// settle takes in what there is now: the breakers, and the totals of all that were
// dropped.
func (l *ledger) settle(all []seen, dropped breaker.Totals) {
	if l.accounts == nil {
		l.accounts, l.last = map[string]*breaker.Totals{}, map[*breaker.Breaker]entry{}
	}
	l.round++
	sum := dropped
	present := make(map[string]bool, len(all)) // keys, and whether something was counted
	for i := range all {
		s := &all[i]
		sum = sum.Plus(s.totals)
		present[s.key] = present[s.key] || s.totals != breaker.Totals{}
	}
	for key, had := range l.accounts {
		if _, ok := present[key]; !ok {
			l.evicted = l.evicted.Plus(*had)
			delete(l.accounts, key)
		}
	}
	l.open(present)
	for i := range all {
		l.book(&all[i])
	}
	for b, had := range l.last {
		if had.round != l.round {
			delete(l.last, b)
		}
	}
	booked := l.other.Plus(l.evicted)
	for _, t := range l.accounts {
		booked = booked.Plus(*t)
	}
	l.evicted = l.evicted.Plus(beyond(sum, booked))
}

// open gives accounts to keys without one: to those on which something was counted
// first, in the place of those on which nothing was.
func (l *ledger) open(present map[string]bool) {
	var counted, idle []string
	for key, has := range present {
		switch {
		case l.accounts[key] != nil:
		case key == otherKey || key == evictedKey: // these are no breaker's own
		case has:
			counted = append(counted, key)
		default:
			idle = append(idle, key)
		}
	}
	free := l.most - len(l.accounts)
	if len(counted) > free {
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(l.accounts))) {
			if len(counted) == free {
				break
			}
			if *l.accounts[key] == (breaker.Totals{}) && !present[key] {
				delete(l.accounts, key)
				free++
			}
		}
	}
	wanting := counted
	if free > len(counted) {
		slices.Sort(idle)
		wanting = append(wanting, idle...)
	}
	slices.Sort(wanting[:len(counted)])
	for _, key := range wanting[:min(free, len(wanting))] {
		l.accounts[key] = new(breaker.Totals)
	}
	l.others = len(l.accounts) < len(present)
}

// book books what a breaker has counted since it was last seen.
func (l *ledger) book(s *seen) {
	if s.totals == (breaker.Totals{}) {
		return // or it has just been dropped
	}
	more := beyond(s.totals, l.last[s.breaker].Totals)
	l.last[s.breaker] = entry{s.totals, l.round}
	to := l.accounts[s.key]
	if to == nil {
		to = &l.other
	}
	*to = to.Plus(more)
}

// beyond returns by how much t is more than u, in each of its counters.
func beyond(t, u breaker.Totals) breaker.Totals {
	return breaker.Totals{Actions: actionsBeyond(t.Actions, u.Actions), Shadow: actionsBeyond(t.Shadow, u.Shadow), Neutral: minus(t.Neutral, u.Neutral)}
}

func actionsBeyond(t, u breaker.Actions) breaker.Actions {
	return breaker.Actions{
		Opens:           minus(t.Opens, u.Opens),
		ProbesSucceeded: minus(t.ProbesSucceeded, u.ProbesSucceeded),
		ProbesFailed:    minus(t.ProbesFailed, u.ProbesFailed),
		ProbesExpired:   minus(t.ProbesExpired, u.ProbesExpired),
		ProbesNeutral:   minus(t.ProbesNeutral, u.ProbesNeutral),
		RefusedOpen:     minus(t.RefusedOpen, u.RefusedOpen),
		RefusedHalfOpen: minus(t.RefusedHalfOpen, u.RefusedHalfOpen),
		RefusedForced:   minus(t.RefusedForced, u.RefusedForced),
		RefusedRamp:     minus(t.RefusedRamp, u.RefusedRamp),
	}
}

// minus returns t less u, or 0.
func minus(t, u uint64) uint64 { return t - min(t, u) }
