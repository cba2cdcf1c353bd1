package holdfast

import "github.com/holdfast-go/holdfast/internal/deadline"

// Room is for the kit's own adapters: a place for the contexts of a call and of one of
// its attempts that outlives the function that makes it. An adapter that allocates
// something for the attempt anyhow makes a Room part of that. It serves one call and one
// attempt.
type Room struct {
	call within
	held deadline.Held
}

// ofCall returns the place for the call's context, nil if there is none.
func (t *Terms) ofCall() *within {
	switch {
	case t.UnaryRoom != nil:
		return &t.UnaryRoom.call
	case t.Room != nil:
		return &t.Room.call
	}
	return nil
}

// UnaryRoom is for the kit's own adapters: a [Room] for a call whose attempts are each
// one function. The first has its context in it.
type UnaryRoom struct {
	call within
	own  deadline.Own
}

// ofOwn returns the place for an attempt's context, nil if there is none.
func (r *UnaryRoom) ofOwn() *deadline.Own {
	if r == nil {
		return nil
	}
	return &r.own
}

// In lets an attempt that is not yet open have its context in r.
func (a *Attempt) In(r *Room) { a.held = &r.held }

// Move makes to, which is new, what a is, and a an attempt that holds nothing: from
// its maker's stack to where its answer keeps it.
func (a *Attempt) Move(to *Attempt) {
	a.ticket.Move(&to.ticket)
	a.permit.Move(&to.permit)
	to.probe, to.ending = a.probe, a.ending
	to.limit, to.whole, to.until, to.own, to.hasty = a.limit, a.whole, a.until, a.own, a.hasty
	to.held, to.bucket, to.tally, to.seat, to.hop = a.held, a.bucket, a.tally, a.seat, a.hop
	to.booked.Store(a.booked.Load())
	a.own, a.held, a.seat, a.hop = nil, nil, nil, nil
	a.booked.Store(true)
}

// Passes reports whether the context of an attempt, which was admitted, is the very one
// that the call was begun with.
func (c *Call) Passes(a *Attempt) bool {
	return c.passes && a.held == nil && a.own == nil && a.seat == nil
}
