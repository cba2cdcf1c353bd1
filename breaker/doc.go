// Package breaker cuts off a dependency that does not do its work, and lets it back
// in by a few attempts first.
//
// An attempt is one try at the dependency; a call that is repeated makes several. A
// [Breaker] is asked before every attempt and told how it ended:
//
//	ticket, err := b.Allow()
//	if err != nil {
//		return err // an *OpenError, which matches ErrOpen
//	}
//	...
//	ticket.Done(breaker.Outcome{Verdict: breaker.Success})
//
// A [Group] has a breaker for each key, such as a host. [AllowBoth] asks two breakers for
// one attempt: that of a method, say, and that of the host.
//
// # States
//
// Closed, it admits all and judges results by the rules of [Config]: shares of
// failures and of slow attempts, a number of failures, failures in a row, and
// silence. Open, it refuses until the cooldown is over. Then it is half-open:
// at most Probes attempts are in flight, the probes; each has a lease, a time within
// which it must be answered or has failed. ProbeSuccesses in a row close,
// one failure opens for longer. After a recovery it may admit a growing share only,
// the ramp.
//
// A ticket belongs to the state that gave it out, one generation of the breaker.
// Whatever ends later than that state counts for nothing: a late success does not
// close, a late failure does not open again, and neither frees a slot that it does not
// hold.
//
// There is no goroutine and no timer, other than those of a [Fleet]. What time has
// brought about is found by the next call, and is dated at the moment at which it
// came about; reading a breaker changes nothing and tells what the next call would
// find.
//
// # Exactness
//
// A breaker that many goroutines use at once behaves like one that does one
// thing at a time. A result and the change of state it causes are one step: no
// call is admitted after a result that opened. The lock is taken for changes of
// state, for probes, by the first result of each bucket of a time window, and in
// a window of the last N results by a failure, a slow call, and one
// success in a window's length; the other successes of a closed breaker and the
// refusals of an open one take none. Silence alone is judged from counts that
// are read one after the other.
//
// A reading of the clock may be older than one that another goroutine has used.
// It does not turn back what that one has brought about.
//
// # Fleets
//
// A [Fleet] lets the breakers of several processes act as one: what one worker
// finds out protects all, one probe serves all, and a store that is down harms
// none. [Join] makes one of a [Store]; its groups and breakers are made by
// [Fleet.Group] and [Fleet.Breaker], or by a kit's Config.Shared.
//
// Closed and open breakers read what this process knows already. A timer reads
// what is new every Refresh while breakers are used, on a goroutine of its own;
// openings and the ends of probes are told there too. One thing waits: a call that
// is about to be a probe asks for the lock of the one probe that its key has in
// the fleet, for Timeout at most. Config.Probes plays no part then.
//
//   - An opening is set if there is none: whoever finds out later joins it, and
//     its end is the same for all.
//   - Probes that succeed count for the fleet: with ProbeSuccesses 3 three workers
//     may make one each. A breaker that has enough stays half-open until the store
//     has compared the generation that was probed with the one in force, and
//     closed it.
//   - What is of an older generation, and a lock that has expired, changes nothing.
//     An opening does not count either that a worker makes of results from before
//     a recovery it has not heard of: it starts empty instead.
//   - While the store does not answer each breaker goes by its own knowledge, and
//     probes by it; what it has to tell is told once the store answers.
//   - What is missing in the store says nothing: what is open here stays open and
//     is written again.
//
// Workers may run different configurations. Each opens by its own rules; the
// Cooldown is that of whoever opened, ProbeSuccesses that of whoever probes last,
// the lock lasts for the prober's ProbeTimeout, RampUp is each worker's own, and
// a report counts as one for the Quorum of whoever reports last. One with
// LocalOnly or Shadow takes no part. Reset, Disable, ForceOpen and Release are
// about this process; [Fleet.ForceOpen] and [Fleet.Release] about all.
//
// # What it costs
//
// Nothing is allocated but for a change of state. With failures in a row or a
// window of the last N results as the only rules, an attempt that
// succeeds writes to no shared memory while there is nothing bad in the window,
// and does not read the clock.
//
// # What is not for users
//
// The functions and methods that end in At take a reading of the clock that a kit hands
// from layer to layer; the type of it is internal. They, and a few others whose
// docstrings begin the same way, are for the kit's own packages and change without
// notice. Each has a counterpart here, or users have no need of it.
package breaker
