// Package breaker cuts a dependency off that does not do its work, and lets it
// back in by a few attempts first.
//
// A [Breaker] is asked before every attempt and told how it ended:
//
//	ticket, err := b.Allow()
//	if err != nil {
//		return err // an *OpenError, which matches ErrOpen
//	}
//	...
//	ticket.Done(breaker.Outcome{Verdict: breaker.Success})
//
// # States
//
// Closed, it admits all and judges results by the rules of [Config]: shares of
// failures and of slow attempts, a number of failures, failures in a row, and
// silence. Open, it refuses until the cooldown is over. Then it is half-open:
// at most Probes attempts are in flight, each a lease that runs out by itself;
// so many successes in a row close, one failure opens for longer. After a
// recovery it may admit a growing share only.
//
// A ticket belongs to the state that gave it out. Whatever ends later than that
// state is nothing: a late success does not close, a late failure does not open
// again, and neither frees a slot that it does not hold.
//
// There is no goroutine and no timer. What time has brought about is found by
// the next call, and is dated at the moment at which it came about; reading a
// breaker changes nothing and tells what the next call would find.
//
// # Exactness
//
// A breaker that many goroutines use at once behaves like one that does one
// thing at a time. A result and the change of state it causes are one step: no
// call is admitted after a result that opened. The lock is taken for changes of
// state, for probes, by the first result of each bucket of a time window, and in
// a window of the last so many results by a failure, a slow call, and one
// success in a window's length; the other successes of a closed breaker and the
// refusals of an open one take none. Silence alone is judged from counts that
// are read one after the other.
//
// A reading of the clock may be older than one that another goroutine has used.
// It does not turn back what that one has brought about.
//
// # What it costs
//
// Nothing is allocated but for a change of state. With failures in a row or a
// window of the last so many results as the only rules, an attempt that
// succeeds writes to no shared memory while there is nothing bad in the window,
// and does not read the clock.
package breaker
