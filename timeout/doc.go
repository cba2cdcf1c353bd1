// Package timeout limits how long a call and each of its attempts may take, and
// says afterwards who ended an attempt.
//
// [Limits] are one layer of a holdfast.Policy. How a call has ended that took too long
// is told by errors.Is, here in the order in which to ask:
//
//	timeout.ErrExceeded       one of the kit's limits has passed; an *Error says which
//	timeout.ErrFloor          too little time was left to begin an attempt
//	context.DeadlineExceeded  the caller's own deadline has passed
//	context.Canceled          the caller has given up
//
// The first matches context.DeadlineExceeded too, for a program that does not care whose
// deadline it was.
package timeout
